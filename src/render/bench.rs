//! The report of `verify bench` and `verify calibrate` for people.

use super::HumanOptions;
use super::human::{BOLD, DIM, color, severity_style};
use crate::bench::calibrate::{ClientError, MetricError};
use crate::bench::report::BenchReport;
use crate::model::{Finding, Status, word};
use crate::term::{human_duration, neutralize, pad};
use anstyle::AnsiColor;
use std::fmt::Write;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// What stands where a figure is absent.
const NONE: &str = "—";

/// The metrics of the table, as people call them.
const ROWS: [(&str, &str); 8] = [
    ("ttft", "TTFT"),
    ("ttft_visible", "TTFT visible"),
    ("tpot", "TPOT"),
    ("itl", "ITL"),
    ("icl", "ICL (chunks)"),
    ("e2e", "E2E"),
    ("latency_from_schedule", "from schedule"),
    ("client_queue", "client queue"),
];

/// The whole report.
pub fn human(
    report: &BenchReport,
    findings: &[Finding],
    status: Status,
    duration: Duration,
    options: HumanOptions<'_>,
) -> String {
    let mut out = String::new();
    if !options.quiet {
        write_head(&mut out, report, options);
        if report.successful > 0 {
            write_table(&mut out, report, options);
            write_rates(&mut out, report, options);
        }
        write_generators(&mut out, report, options);
        write_ramp(&mut out, report, options);
        if let Some(error) = &report.client_error {
            write_client_error(&mut out, error, options);
        }
        out.push('\n');
    }
    write_findings(&mut out, findings, options);
    write_verdict(&mut out, report, status, duration, options);
    neutralize_lines(&out, options)
}

/// The client's own errors.
pub fn calibration(errors: &[ClientError], options: HumanOptions<'_>) -> String {
    let mut out = String::new();
    let head = ["c", "", options.say("true mean", "真实均值"), options.say("mean", "均值误差"), "P50", "P99", "n", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for error in errors {
        for (name, metric) in [("TTFT", error.ttft), ("ITL", error.itl), ("E2E", error.e2e)] {
            rows.push(calibration_row(error.concurrency, name, metric, options));
        }
    }
    write_rows(&mut out, &rows);
    let limits = options.say(
        "errors in ms, this client minus the server in its own process; limits: mean and P50 0.5 ms or 1 %, P99 3 ms or 2 %",
        "误差单位 ms，为客户端测得值减去本进程内服务的真实值；限度：均值与 P50 为 0.5 ms 或 1 %，P99 为 3 ms 或 2 %",
    );
    let _ = writeln!(out, "{}", options.paint(DIM, limits));
    out
}

fn calibration_row(
    concurrency: u32,
    name: &str,
    metric: Option<MetricError>,
    options: HumanOptions<'_>,
) -> Vec<String> {
    let Some(metric) = metric else { return vec![concurrency.to_string(), name.to_owned(), NONE.to_owned()] };
    let mark =
        if metric.within { options.say("within limits", "在限度内") } else { options.say("above", "超限") };
    vec![
        concurrency.to_string(),
        name.to_owned(),
        format!("{:.2}", metric.true_mean_ms),
        format!("{:+.3}", metric.mean_ms),
        format!("{:+.3}", metric.p50_ms),
        format!("{:+.3}", metric.tail_ms),
        metric.n.to_string(),
        mark.to_owned(),
    ]
}

fn write_head(out: &mut String, report: &BenchReport, options: HumanOptions<'_>) {
    let load = &report.load;
    let shape = match (load.concurrency, load.request_rate, &load.arrival) {
        (Some(count), ..) => format!("{} c={count}", options.say("closed loop", "闭环")),
        (None, Some(rate), arrival) => {
            format!("{} {rate}/s {}", options.say("open loop", "开环"), arrival.as_deref().unwrap_or_default())
        }
        (None, None, _) => options.say("replayed trace", "回放轨迹").to_owned(),
    };
    let _ = writeln!(out, "{}  {}", options.paint(BOLD, &report.model), report.base_url);
    let requests = options.say("requests", "个请求");
    let tokens = options.say("tokens at most", "个 token 上限");
    let warm = options.say("warm-up", "预热");
    let count = load.num_prompts;
    let line = format!("{shape} · {count} {requests} · {} {tokens} · {warm} {}", load.max_tokens, load.warmup);
    let _ = writeln!(out, "{}\n", options.paint(DIM, &line));
}

fn write_table(out: &mut String, report: &BenchReport, options: HumanOptions<'_>) {
    let figure = |name: String| report.latencies.get(&name).copied().flatten();
    let shown = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.2}"));
    let open = report.load.shape == "open";
    let head = ["ms", options.say("mean", "均值"), "min", "P50", "P90", "P95", "P99", "max", "n"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (metric, name) in ROWS {
        let same = metric == "ttft_visible" && figure("ttft_visible_ms".to_owned()) == figure("ttft_ms".to_owned());
        let extra = matches!(metric, "latency_from_schedule" | "client_queue") && !open;
        let Some(spread) = report.distributions.get(metric).filter(|_| !same && !extra) else { continue };
        let mut row = vec![name.to_owned(), shown(Some(spread.mean)), shown(Some(spread.min))];
        row.extend(["p50", "p90", "p95", "p99"].map(|percentile| shown(spread.percentile(percentile))));
        row.extend([shown(Some(spread.max)), spread.n.to_string()]);
        rows.push(row);
    }
    write_rows(out, &rows);
    out.push('\n');
}

fn write_rates(out: &mut String, report: &BenchReport, options: HumanOptions<'_>) {
    let mut parts = Vec::new();
    let tokens = options.say("tokens/s", "token/s");
    parts.extend(report.output_tokens_per_s.map(|rate| format!("{rate:.1} {tokens}")));
    parts.extend(
        report.steady_output_tokens_per_s.map(|rate| format!("{} {rate:.1} {tokens}", options.say("steady", "稳态"))),
    );
    parts.extend(report.requests_per_s.map(|rate| format!("{rate:.2} {}", options.say("requests/s", "请求/s"))));
    parts.extend(report.goodput_share.map(|share| {
        let rate = report.goodput_requests_per_s.unwrap_or_default();
        format!("{} {rate:.2}/s ({:.0} %)", options.say("goodput", "达标吞吐"), share * 100.0)
    }));
    let _ = writeln!(out, "{}", parts.join(" · "));
    let mut parts = Vec::new();
    let cold = options.say("cold TTFT", "冷启动 TTFT");
    parts.extend(report.cold_ttft_ms.map(|cold_ttft| format!("{cold} {cold_ttft:.1} ms")));
    let fairness = options.say("fairness (Jain)", "公平性（Jain）");
    parts.extend(report.fairness_jain_ttft.map(|index| format!("{fairness} {index:.3}")));
    let cache = options.say("prefix cache hits", "前缀缓存命中");
    parts.extend(report.prefix_cache_hit_rate.map(|rate| format!("{cache} {:.1} %", rate * 100.0)));
    let waiting = options.say("waiting at most", "最多排队");
    parts.extend(report.queue_waiting_peak.map(|peak| format!("{waiting} {peak}")));
    parts.extend(report.mean_logprob.map(|mean| format!("logprob {mean:.4}")));
    if !parts.is_empty() {
        let _ = writeln!(out, "{}", parts.join(" · "));
    }
    write_tenants(out, report, options);
}

fn write_tenants(out: &mut String, report: &BenchReport, options: HumanOptions<'_>) {
    if report.tenants.is_empty() {
        return;
    }
    let head = [options.say("tenant", "租户"), options.say("requests", "请求"), "TTFT ms", "E2E ms", "tokens/s"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let shown = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.1}"));
    for (name, tenant) in &report.tenants {
        rows.push(vec![
            name.clone(),
            (tenant.successful + tenant.failed).to_string(),
            shown(tenant.ttft_ms),
            shown(tenant.e2e_ms),
            shown(tenant.output_tokens_per_s),
        ]);
    }
    write_rows(out, &rows);
}

/// Where the load came from, and which figures lean on clocks of several machines.
fn write_generators(out: &mut String, report: &BenchReport, options: HumanOptions<'_>) {
    let Some(merged) = &report.merged else { return };
    let shown =
        |value: Option<f64>, digits: usize| value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.digits$}"));
    let head = [
        options.say("generator", "压测进程"),
        options.say("requests", "请求"),
        options.say("failed", "失败"),
        "TTFT ms",
        options.say("began s", "开始 s"),
        options.say("ended s", "结束 s"),
        options.say("wall clock ahead ms", "系统时钟超前 ms"),
        "± ms",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for one in &merged.generators {
        rows.push(vec![
            one.part.to_string(),
            one.requests.to_string(),
            one.failed.to_string(),
            shown(one.ttft_ms, 2),
            shown(one.began_s, 3),
            shown(one.ended_s, 3),
            shown(one.wall_clock_ahead_ms, 1),
            shown(one.uncertainty_ms, 3),
        ]);
    }
    out.push('\n');
    write_rows(out, &rows);
    let (Some(apart), Some(mean), Some(most)) =
        (merged.clock_uncertainty_ms, merged.in_flight_mean, merged.in_flight_max)
    else {
        return;
    };
    let share = merged.rate_uncertainty.unwrap_or(0.0) * 100.0;
    let line = match options.lang {
        crate::model::Lang::En => format!(
            "on a common clock, ±{apart:.3} ms: rates (±{share:.3} %), duration, in flight (mean {mean:.1}, at most {most}); all other figures are lengths within one request"
        ),
        crate::model::Lang::Zh => format!(
            "依赖共同时钟（±{apart:.3} ms）：速率（±{share:.3} %）、时长、在途请求（平均 {mean:.1}，最多 {most}）；其余数据都是单个请求内的时长"
        ),
    };
    let _ = writeln!(out, "{}", options.paint(DIM, &line));
}

fn write_ramp(out: &mut String, report: &BenchReport, options: HumanOptions<'_>) {
    if report.ramp.is_empty() {
        return;
    }
    let level = if report.load.shape == "open" { "rate/s" } else { "c" };
    let head = [level, "tokens/s", "requests/s", "TTFT ms", "TPOT ms", "E2E ms", options.say("failed", "失败")];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let shown = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.1}"));
    for step in &report.ramp {
        let figures = [step.output_tokens_per_s, step.requests_per_s, step.ttft_ms, step.tpot_ms, step.e2e_ms];
        let mut row = vec![step.level.to_string()];
        row.extend(figures.map(shown));
        row.push(step.failed.to_string());
        rows.push(row);
    }
    out.push('\n');
    write_rows(out, &rows);
    let text = match report.knee {
        Some(knee) => format!("{} {level}={knee}", options.say("knee:", "拐点：")),
        None => options.say("no knee: throughput still grew", "没有拐点：吞吐仍在增长").to_owned(),
    };
    let _ = writeln!(out, "{}", options.paint(BOLD, &text));
}

fn write_client_error(out: &mut String, error: &ClientError, options: HumanOptions<'_>) {
    let part = |name: &str, metric: Option<MetricError>| {
        metric.map_or_else(|| format!("{name} {NONE}"), |metric| format!("{name} {:+.2} ms", metric.mean_ms))
    };
    let parts = [part("TTFT", error.ttft), part("ITL", error.itl), part("E2E", error.e2e)].join(", ");
    let label = options.say("client error on this machine", "客户端在本机的误差");
    let _ = writeln!(out, "{}", options.paint(DIM, &format!("{label}: {parts} (c={})", error.concurrency)));
}

fn write_findings(out: &mut String, findings: &[Finding], options: HumanOptions<'_>) {
    use crate::model::Severity;
    let mut sorted: Vec<&Finding> =
        findings.iter().filter(|finding| !options.quiet || finding.severity == Severity::Error).collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    for finding in sorted {
        let severity = options.paint(severity_style(finding.severity), word(finding.severity.name(), options.lang));
        let message = neutralize(&finding.message(options.lang)).replace('\n', " ");
        let _ = writeln!(out, "{severity}[{}]: {message}", finding.rule.id);
        if let Some(help) = finding.help_text(options.lang) {
            let _ = writeln!(out, "  {}: {}", options.say("help", "建议"), neutralize(&help));
        }
    }
}

fn write_verdict(
    out: &mut String,
    report: &BenchReport,
    status: Status,
    duration: Duration,
    options: HumanOptions<'_>,
) {
    let (word, style) = if status == Status::Pass {
        (options.say("passed", "通过"), color(AnsiColor::Green))
    } else {
        (options.say("failed", "未通过"), color(AnsiColor::Red))
    };
    let (ok, bad) = (report.successful, report.failed);
    let counts = match options.lang {
        crate::model::Lang::En => format!("{ok} requests succeeded, {bad} failed"),
        crate::model::Lang::Zh => format!("{ok} 个请求成功，{bad} 个失败"),
    };
    let _ = writeln!(out, "{} — {counts} ({})", options.paint(style.bold(), word), human_duration(duration));
}

/// Columns, numbers to the right.
fn write_rows(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column == 0 { pad(cell, *width) } else { format!("{}{cell}", " ".repeat(width - cell.width())) }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Names of servers and tenants must not steer the terminal; our own colours may.
fn neutralize_lines(text: &str, options: HumanOptions<'_>) -> String {
    if options.color { text.to_owned() } else { neutralize(text) }
}
