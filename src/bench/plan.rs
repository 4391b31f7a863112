//! What is sent when: sessions and their times from options. Pure, and the same for the
//! same seed.

use super::load::{Session, Shape};
use super::workload::Workload;
use crate::client::ChatRequest;
use crate::model::Partition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// A small generator of random numbers (SplitMix64): the same on every machine.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Times of `count` arrivals at equal distances.
pub fn constant_arrivals(count: usize, rate: f64) -> Vec<Duration> {
    (0..count).map(|index| Duration::from_secs_f64(index as f64 / rate)).collect()
}

/// Times of `count` arrivals of a Poisson process.
pub fn poisson_arrivals(count: usize, rate: f64, seed: u64) -> Vec<Duration> {
    let mut random = Random::new(seed);
    let mut at = 0.0;
    (0..count)
        .map(|_| {
            let now = at;
            at += -(1.0 - random.unit()).ln() / rate;
            Duration::from_secs_f64(now)
        })
        .collect()
}

/// The part of a number that falls to one of several generators; the parts add up to it.
pub fn share(whole: u32, Partition { part, of }: Partition) -> u32 {
    let of = u32::try_from(of.max(1)).unwrap_or(u32::MAX);
    let first = u32::try_from(part.saturating_sub(1)).unwrap_or(u32::MAX);
    whole / of + u32::from(first < whole % of)
}

/// The part of a load that falls to one of several generators: every Nth session with its
/// time, and its share of the requests in flight. The parts together are the whole load.
pub fn deal(sessions: Vec<Session>, shape: Shape, partition: Partition) -> (Vec<Session>, Shape) {
    fn every<T>(all: Vec<T>, Partition { part, of }: Partition) -> Vec<T> {
        all.into_iter().skip(part.saturating_sub(1)).step_by(of.max(1)).collect()
    }
    let shape = match shape {
        Shape::Closed { concurrency } => Shape::Closed { concurrency: share(concurrency, partition) },
        Shape::Open { arrivals, max_in_flight } => Shape::Open {
            arrivals: every(arrivals, partition),
            max_in_flight: max_in_flight.map(|most| share(most, partition)),
        },
    };
    (every(sessions, partition), shape)
}

/// One tenant of a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tenant {
    /// Name.
    pub name: String,
    /// Its part of the requests, relative to the others.
    pub weight: f64,
    /// Tokens of its answers at most, where they differ.
    pub max_tokens: Option<u32>,
    /// Words that its prompts have more.
    pub words: Option<u32>,
}

/// A mix of tenants: `chat=3:max_tokens=32,batch=1:words=400`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Tenants(pub Vec<Tenant>);

impl FromStr for Tenants {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let tenants: Vec<Tenant> = text.split(',').map(tenant).collect::<Result<_, _>>()?;
        let mut names: Vec<&str> = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("tenant `{}` is named twice", pair[0])),
            None => Ok(Tenants(tenants)),
        }
    }
}

fn tenant(text: &str) -> Result<Tenant, String> {
    let mut parts = text.split(':');
    let (name, weight) =
        parts.next().and_then(|part| part.split_once('=')).ok_or("needed: NAME=WEIGHT[:key=value…]")?;
    let weight = weight.parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight > 0.0);
    let mut tenant = Tenant {
        name: name.trim().to_owned(),
        weight: weight.ok_or_else(|| format!("the weight of `{name}` must be a number above 0"))?,
        max_tokens: None,
        words: None,
    };
    if tenant.name.is_empty() {
        return Err("a tenant needs a name".to_owned());
    }
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("`{part}` is no key=value"))?;
        let value = value.parse::<u32>().ok().filter(|value| *value > 0);
        let value = value.ok_or_else(|| format!("`{key}` of `{name}` must be a whole number above 0"))?;
        match key {
            "max_tokens" => tenant.max_tokens = Some(value),
            "words" => tenant.words = Some(value),
            _ => return Err(format!("`{key}` is none of max_tokens, words")),
        }
    }
    Ok(tenant)
}

/// Targets of goodput, ms: `ttft:200,tpot:50,e2e:3000`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Targets {
    /// Time to first token.
    pub ttft: Option<f64>,
    /// Time per output token.
    pub tpot: Option<f64>,
    /// End-to-end latency.
    pub e2e: Option<f64>,
}

impl FromStr for Targets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut targets = Targets::default();
        for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once(':').ok_or_else(|| format!("`{part}` is no metric:ms"))?;
            let value = value.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
            let value = value.ok_or_else(|| format!("the target of `{name}` must be a number of ms above 0"))?;
            match name {
                "ttft" => targets.ttft = Some(value),
                "tpot" => targets.tpot = Some(value),
                "e2e" | "e2el" => targets.e2e = Some(value),
                _ => return Err(format!("`{name}` is none of ttft, tpot, e2e")),
            }
        }
        if targets == Targets::default() { Err("a target is needed, such as ttft:200".to_owned()) } else { Ok(targets) }
    }
}

/// Where prompts come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompts {
    /// The same text every time.
    Fixed(String),
    /// Texts of our own, no two alike, behind so many words that all share.
    Own {
        /// Words in common.
        shared_words: u32,
    },
    /// A file, from its beginning again at its end.
    File(Workload),
}

/// A workload before its times are known.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// Where prompts come from.
    pub prompts: Prompts,
    /// Tokens of an answer at most.
    pub max_tokens: u32,
    /// Turns of a session.
    pub turns: u32,
    /// Who asks.
    pub tenants: Option<Tenants>,
    /// Seed of salt and mix.
    pub seed: u64,
}

/// What is asked, by number, when nothing else is given.
const SUBJECTS: [&str; 8] = [
    "Explain how a key-value cache speeds up the decoding of a language model.",
    "Write a short story about a lighthouse keeper who finds a message in a bottle.",
    "请说明首 token 延迟和每 token 延迟分别受哪些因素影响。",
    "Summarize the differences between static and continuous batching.",
    "List the steps to bake a loaf of sourdough bread, with times and temperatures.",
    "请用三段话介绍投机解码的原理、收益和局限。",
    "Compare memory bandwidth and compute as limits of inference.",
    "Describe a walk through an old town on a rainy evening.",
];
const FURTHER: &str = "Go on with the next part, and be specific.";
const WORDS: [&str; 12] =
    ["the", "server", "keeps", "a", "long", "context", "of", "many", "words", "for", "every", "request"];

fn words(count: u32) -> String {
    (0..count as usize).map(|index| WORDS[index % WORDS.len()]).collect::<Vec<_>>().join(" ")
}

impl Mix {
    /// Sessions for `requests` requests. `salt` sets the prompts of one phase apart from
    /// those of another, so that none is found in a cache.
    pub fn sessions(&self, requests: u32, salt: &str) -> Vec<Session> {
        let mut random = Random::new(self.seed ^ 0x007e_4a17);
        let turns = self.turns.max(1);
        let mut left = requests;
        let mut sessions = Vec::new();
        while left > 0 {
            let now = left.min(turns);
            sessions.push(self.session(requests - left, now, salt, &mut random));
            left -= now;
        }
        sessions
    }

    fn session(&self, first: u32, turns: u32, salt: &str, random: &mut Random) -> Session {
        let tenant = self.tenants.as_ref().and_then(|tenants| choose(&tenants.0, random.unit()));
        let turns = (0..turns).map(|turn| self.request(first + turn, turn, salt, tenant)).collect();
        Session { tenant: tenant.map(|tenant| Arc::from(tenant.name.as_str())), turns }
    }

    fn request(&self, index: u32, turn: u32, salt: &str, tenant: Option<&Tenant>) -> ChatRequest {
        let max_tokens = tenant.and_then(|tenant| tenant.max_tokens).unwrap_or(self.max_tokens);
        let more = tenant.and_then(|tenant| tenant.words).map(|count| format!("\n{}", words(count)));
        let more = more.unwrap_or_default();
        let id = format!("{salt}{index}");
        let subject = SUBJECTS[index as usize % SUBJECTS.len()];
        match &self.prompts {
            Prompts::File(workload) => {
                let line = &workload.requests[index as usize % workload.requests.len()];
                ChatRequest { id: format!("{}-{index}", line.id), ..line.clone() }
            }
            _ if turn > 0 => ChatRequest::prompt(id, FURTHER, max_tokens),
            Prompts::Fixed(text) => ChatRequest::prompt(id, &format!("{text}{more}"), max_tokens),
            Prompts::Own { shared_words: 0 } => {
                let text = format!("[{}-{salt}{index}] {subject}{more}", self.seed);
                ChatRequest::prompt(id, &text, max_tokens)
            }
            Prompts::Own { shared_words } => {
                let text = format!("{}\n[{}-{salt}{index}] {subject}{more}", words(*shared_words), self.seed);
                ChatRequest::prompt(id, &text, max_tokens)
            }
        }
    }
}

/// The tenant at a point of the unit interval.
fn choose(tenants: &[Tenant], at: f64) -> Option<&Tenant> {
    let all: f64 = tenants.iter().map(|tenant| tenant.weight).sum();
    let mut left = at * all;
    tenants
        .iter()
        .find(|tenant| {
            left -= tenant.weight;
            left < 0.0
        })
        .or(tenants.last())
}

/// A line of a trace that is replayed.
#[derive(Deserialize)]
struct TraceLine {
    t: f64,
    prompt: String,
    #[serde(default)]
    max_tokens: Option<u32>,
    #[serde(default)]
    tenant: Option<String>,
}

/// Sessions and times of a trace: JSON lines `{t, prompt, max_tokens}`, `t` in seconds.
///
/// # Errors
/// A line is none of that kind; the text says which.
pub fn replay(text: &str, max_tokens: u32, max_in_flight: Option<u32>) -> Result<(Vec<Session>, Shape), String> {
    let mut timed: Vec<(Duration, Session)> = Vec::new();
    for (number, line) in
        (1..).zip(text.trim_start_matches('\u{feff}').lines()).filter(|(_, line)| !line.trim().is_empty())
    {
        let line: TraceLine = serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))?;
        let at = Duration::try_from_secs_f64(line.t).map_err(|_| format!("line {number}: `t` is no time"))?;
        let request =
            ChatRequest::prompt(format!("line-{number}"), &line.prompt, line.max_tokens.unwrap_or(max_tokens));
        timed.push((at, Session { tenant: line.tenant.map(Arc::from), turns: vec![request] }));
    }
    if timed.is_empty() {
        return Err("it holds no request".to_owned());
    }
    timed.sort_by_key(|(at, _)| *at);
    let (arrivals, sessions) = timed.into_iter().unzip();
    Ok((sessions, Shape::Open { arrivals, max_in_flight }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_load_add_up_to_it() {
        let partition = |part| Partition { part, of: 3 };
        let shares: Vec<u32> = (1..=3).map(|part| share(8, partition(part))).collect();
        assert_eq!(shares, [3, 3, 2]);
        let named = |index: u32| Session::from(ChatRequest::prompt(index.to_string(), "x", 1));
        let sessions: Vec<Session> = (0..7).map(named).collect();
        let arrivals = constant_arrivals(7, 10.0);
        let open = Shape::Open { arrivals: arrivals.clone(), max_in_flight: Some(4) };
        let mut all = Vec::new();
        for part in 1..=3 {
            let (dealt, Shape::Open { arrivals, max_in_flight }) =
                deal(sessions.clone(), open.clone(), partition(part))
            else {
                panic!("open stays open")
            };
            assert!(max_in_flight.is_some_and(|most| (1..=2).contains(&most)));
            all.extend(dealt.into_iter().zip(arrivals));
        }
        all.sort_by_key(|(_, at)| *at);
        assert_eq!(all, sessions.into_iter().zip(arrivals).collect::<Vec<_>>());
    }

    #[test]
    fn arrivals_follow_their_rate_and_their_seed() {
        assert_eq!(constant_arrivals(3, 20.0), [0, 50, 100].map(Duration::from_millis));
        let poisson = poisson_arrivals(20_000, 10.0, 7);
        let seconds = poisson[19_999].as_secs_f64();
        assert!((1900.0..2100.0).contains(&seconds), "{seconds}");
        assert_eq!(poisson, poisson_arrivals(20_000, 10.0, 7));
        assert_ne!(poisson, poisson_arrivals(20_000, 10.0, 8));
        assert!(poisson.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn no_two_prompts_are_alike_unless_that_is_wanted() {
        let mix = |prompts| Mix { prompts, max_tokens: 8, turns: 1, tenants: None, seed: 1 };
        let text = |session: &Session| session.turns[0].messages.to_string();
        let own = mix(Prompts::Own { shared_words: 40 }).sessions(16, "m");
        let texts: std::collections::BTreeSet<String> = own.iter().map(text).collect();
        assert_eq!(texts.len(), 16);
        assert!(texts.iter().all(|text| text.contains(&words(40))));
        let fixed = mix(Prompts::Fixed("hi".to_owned())).sessions(3, "m");
        assert!(fixed.iter().all(|session| text(session) == text(&fixed[0])));
    }

    #[test]
    fn requests_are_turns_of_sessions() {
        let mix = Mix { prompts: Prompts::Own { shared_words: 0 }, max_tokens: 8, turns: 3, tenants: None, seed: 1 };
        let turns: Vec<usize> = mix.sessions(7, "m").iter().map(|session| session.turns.len()).collect();
        assert_eq!(turns, [3, 3, 1]);
    }

    #[test]
    fn tenants_come_by_weight() {
        let tenants: Tenants = "chat=3:max_tokens=4,batch=1:words=9".parse().unwrap();
        let mix =
            Mix { prompts: Prompts::Own { shared_words: 0 }, max_tokens: 8, turns: 1, tenants: Some(tenants), seed: 1 };
        let sessions = mix.sessions(4000, "m");
        let batch: Vec<&Session> = sessions.iter().filter(|one| one.tenant.as_deref() == Some("batch")).collect();
        assert!((900..1100).contains(&batch.len()), "{}", batch.len());
        assert_eq!(batch[0].turns[0].max_tokens, 8);
        for wrong in ["chat", "chat=0", "a=1,a=2", "a=1:x=2", "=1", "a=1:max_tokens=no"] {
            assert!(wrong.parse::<Tenants>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn targets_are_named_in_ms() {
        let targets: Targets = "ttft:200,e2e:3000".parse().unwrap();
        assert_eq!(targets, Targets { ttft: Some(200.0), tpot: None, e2e: Some(3000.0) });
        for wrong in ["", "ttft", "ttft:0", "itl:5", "ttft:NaN"] {
            assert!(wrong.parse::<Targets>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_trace_is_replayed_in_the_order_of_its_times() {
        let text = "{\"t\":0.5,\"prompt\":\"b\"}\n\n{\"t\":0,\"prompt\":\"a\",\"max_tokens\":3}\n";
        let (sessions, shape) = replay(text, 8, None).unwrap();
        assert_eq!(sessions[0].turns[0].max_tokens, 3);
        let arrivals = [0, 500].map(Duration::from_millis).to_vec();
        assert_eq!(shape, Shape::Open { arrivals, max_in_flight: None });
        for wrong in ["", "{\"t\":-1,\"prompt\":\"a\"}", "{\"prompt\":\"a\"}", "no"] {
            assert!(replay(wrong, 8, None).is_err(), "{wrong}");
        }
    }
}
