//! Closed loop: a fixed number of requests in flight until the list is done.

use crate::client::{ChatRequest, FaultKind, RequestFault, RequestTrace, Run};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc::UnboundedSender;

/// Sends `requests`, `concurrency` at a time, and returns their traces in the order of
/// the list. Each trace also goes to `done` as it ends, so that an interruption loses
/// nothing that was measured.
pub async fn closed_loop(
    run: &Run<'_>,
    requests: &[ChatRequest],
    concurrency: u32,
    done: &UnboundedSender<()>,
) -> Vec<RequestTrace> {
    let next = AtomicUsize::new(0);
    let workers = (0..(concurrency as usize).clamp(1, requests.len().max(1))).map(|_| async {
        let mut connection = run.endpoint.connect().await.ok();
        let mut traces = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = requests.get(index) else { break traces };
            traces.push((index, run.send(request, &mut connection).await));
            // Nobody listens when no progress is shown.
            let _ = done.send(());
        }
    });
    let mut traces: Vec<(usize, RequestTrace)> = join_all(workers).await.into_iter().flatten().collect();
    traces.sort_by_key(|(index, _)| *index);
    traces.into_iter().map(|(_, trace)| trace).collect()
}

/// Waits for all futures at once, on this task: none of them outlives the caller.
async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut ready = true;
        for (future, output) in &mut pending {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => ready = false,
                }
            }
        }
        if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, output)| output).collect()
}

/// The fault of a request that was given up because the run ended.
pub fn cancelled(why: &str) -> RequestFault {
    RequestFault::new(FaultKind::Cancelled, why)
}
