//! The figures of an experiment with the tables behind them.

use crate::model::Lang;
use crate::report::plot::{Axis, Chart, Line, STYLES, escape, forest, timeline};
use crate::report::text::{percent, relative, verdict};
use crate::report::{Arm, Scope, Source, metric_title, number};

/// Points of a distribution that are drawn at most.
const MAX_STEPS: usize = 250;
/// Throughput that gains less than this at the next level has its knee here.
const KNEE: f64 = 0.05;

/// A figure, or why there is none: then the caption says it.
pub(super) struct Figure {
    /// Heading.
    pub(super) title: String,
    /// What it shows.
    pub(super) caption: String,
    /// The drawing.
    pub(super) svg: Option<String>,
    /// Entries of the legend, as markup.
    pub(super) legend: Vec<String>,
    /// Head of the table behind it.
    pub(super) head: Vec<String>,
    /// The table behind it.
    pub(super) rows: Vec<Vec<String>>,
}

/// Every figure of an experiment.
pub(super) fn all(source: &Source, id: &str, lang: Lang) -> Vec<Figure> {
    let draw = Draw { source, id, lang };
    let mut figures = vec![draw.differences()];
    figures.push(draw.distribution("ttft", "TTFT", |arm| &arm.series.ttft_ms));
    figures.push(draw.distribution("e2e", "E2E", |arm| &arm.series.e2e_ms));
    figures.extend(draw.at_load());
    figures.extend(draw.memory());
    figures.extend(source.arms.iter().enumerate().map(|(index, arm)| draw.requests(index, arm)));
    figures
}

struct Draw<'a> {
    source: &'a Source,
    id: &'a str,
    lang: Lang,
}

impl Draw<'_> {
    fn say(&self, en: &'static str, zh: &'static str) -> &'static str {
        if self.lang == Lang::En { en } else { zh }
    }

    fn words(&self, en: String, zh: String) -> String {
        if self.lang == Lang::En { en } else { zh }
    }

    /// One entry per arm with the line as it is drawn.
    fn legend(&self, has: impl Fn(&Arm) -> bool) -> Vec<String> {
        let arms = self.source.arms.iter().enumerate().filter(|(_, arm)| has(arm));
        arms.map(|(index, arm)| {
            let style = index % STYLES;
            format!(
                "<li><svg width=\"34\" height=\"10\" aria-hidden=\"true\"><path class=\"line s{style}\" d=\"M0 5H34\"/></svg>{}</li>",
                escape(&arm.name)
            )
        })
        .collect()
    }

    /// Share of requests that were at least as fast.
    fn distribution(&self, key: &str, name: &'static str, values: fn(&Arm) -> &Vec<f64>) -> Figure {
        let title = self.words(format!("Distribution of {name}"), format!("{name} 分布"));
        let caption = self.words(
            format!("Share of the measured requests whose {name} was at most this long (ECDF, successful requests of all passes). Further left is faster."),
            format!("{name} 不超过横轴取值的测量请求占比（ECDF，所有轮次的成功请求）。越靠左越快。"),
        );
        let mut chart = Chart {
            id: format!("{}-{key}", self.id),
            title: title.clone(),
            description: self.described(values),
            x: Axis { title: format!("{name}, ms"), log: self.is_wide(values), zero: true, ..Axis::default() },
            y: Axis {
                title: self.say("share of requests, %", "请求占比，%").to_owned(),
                zero: true,
                end: Some(100.0),
                ..Axis::default()
            },
            ..Chart::default()
        };
        for (style, arm) in self.source.arms.iter().enumerate().filter(|(_, arm)| !values(arm).is_empty()) {
            chart.lines.push(Line { style, stretches: vec![steps(values(arm))], step: true, ..Line::default() });
        }
        let shares = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];
        let head = ["n".to_owned()].into_iter().chain(shares.map(|share| match share {
            0.0 => self.say("smallest", "最小").to_owned(),
            1.0 => self.say("largest", "最大").to_owned(),
            share => format!("{:.0} %", share * 100.0),
        }));
        let rows = self.source.arms.iter().map(|arm| {
            let sample = values(arm);
            let cells = shares.map(|share| at_share(sample, share).map_or("—".to_owned(), number));
            [arm.name.clone(), sample.len().to_string()].into_iter().chain(cells).collect()
        });
        Figure {
            caption: if chart.lines.is_empty() {
                self.say("No request succeeded.", "没有成功的请求。").to_owned()
            } else {
                caption
            },
            svg: chart.draw(),
            legend: self.legend(|arm| !values(arm).is_empty()),
            head: self.head(head.collect()),
            rows: rows.collect(),
            title,
        }
    }

    fn head(&self, rest: Vec<String>) -> Vec<String> {
        [vec![self.say("arm", "组").to_owned()], rest].concat()
    }

    /// Median and extremes of every arm, in words.
    fn described(&self, values: fn(&Arm) -> &Vec<f64>) -> String {
        let arms = self.source.arms.iter().filter_map(|arm| {
            let [low, middle, high] = [0.0, 0.5, 1.0].map(|share| at_share(values(arm), share).map(number));
            let (low, middle, high) = (low?, middle?, high?);
            Some(self.words(
                format!("{}: median {middle} ms, from {low} to {high} ms", arm.name),
                format!("{}：中位数 {middle} ms，范围 {low} 至 {high} ms", arm.name),
            ))
        });
        arms.collect::<Vec<_>>().join("; ")
    }

    /// A few slow requests would press everything else against the axis.
    fn is_wide(&self, values: fn(&Arm) -> &Vec<f64>) -> bool {
        let ends = self.source.arms.iter().filter_map(|arm| Some((*values(arm).first()?, *values(arm).last()?)));
        let (low, high) =
            ends.fold((f64::INFINITY, 0.0), |(low, high), (first, last)| (first.min(low), last.max(high)));
        low > 0.0 && high / low > 20.0
    }

    /// Throughput and latencies against concurrency, where the arms differ in it.
    fn at_load(&self) -> Vec<Figure> {
        let mut points: Vec<(u32, &Arm)> =
            self.source.arms.iter().filter_map(|arm| Some((arm.series.concurrency?, arm))).collect();
        points.sort_by_key(|(concurrency, _)| *concurrency);
        let title = self.say("Latency against concurrency", "时延与并发的关系");
        if self.source.variable.as_deref() != Some("concurrency") || points.len() < 2 {
            let why = self.say(
                "Not shown: the arms of this experiment do not differ in concurrency.",
                "未绘制：本实验各组的并发相同。",
            );
            return vec![absent(title, why)];
        }
        let knee = knee(&points);
        [(2, "token/s", self.say("token/s", "token/s")), (1, "E2E P50", "E2E P50, ms"), (0, "TTFT P50", "TTFT P50, ms")]
            .into_iter()
            .map(|(which, name, axis)| self.load_figure(&points, which, name, axis, knee))
            .collect()
    }

    fn load_figure(&self, points: &[(u32, &Arm)], which: usize, name: &str, axis: &str, knee: Option<u32>) -> Figure {
        let title = self.words(format!("{name} against concurrency"), format!("{name} 与并发的关系"));
        let known: Vec<(f64, [f64; 3])> =
            points.iter().filter_map(|(c, arm)| Some((f64::from(*c), arm.series.at_load[which]?))).collect();
        let caption = match knee {
            Some(level) => self.words(
                format!("Median of the passes with the smallest and largest pass. Knee at {level} in flight: the next level adds less than 5 % throughput."),
                format!("各轮中位数及最小、最大值。拐点在并发 {level}：再增加并发，吞吐提升不足 5%。"),
            ),
            None => self.say(
                "Median of the passes with the smallest and largest pass. No knee within these levels: throughput still gains 5 % or more at each.",
                "各轮中位数及最小、最大值。在这些并发内没有拐点：每一级吞吐提升都不低于 5%。",
            ).to_owned(),
        };
        let rows: Vec<Vec<String>> = points
            .iter()
            .map(|(level, arm)| {
                let cells =
                    arm.series.at_load[which].map_or(["—"; 3].map(str::to_owned), |values| values.map(number));
                [vec![arm.name.clone(), level.to_string()], cells.to_vec()].concat()
            })
            .collect();
        let chart = Chart {
            id: format!("{}-load{which}", self.id),
            title: title.clone(),
            description: rows.iter().map(|row| format!("{}: {}", row[1], row[2])).collect::<Vec<_>>().join("; "),
            x: Axis {
                title: self.say("requests in flight", "并发请求数").to_owned(),
                log: true,
                marks: known.iter().map(|(level, _)| *level).collect(),
                ..Axis::default()
            },
            y: Axis { title: axis.to_owned(), zero: true, ..Axis::default() },
            lines: vec![Line {
                style: 0,
                stretches: vec![known.iter().map(|(level, values)| (*level, values[0])).collect()],
                ranges: known.iter().map(|(level, values)| (*level, values[1], values[2])).collect(),
                step: false,
            }],
            marks: knee.map(|level| (f64::from(level), self.say("knee", "拐点").to_owned())).into_iter().collect(),
        };
        let head = [
            self.say("in flight", "并发"),
            self.say("median", "中位数"),
            self.say("smallest", "最小"),
            self.say("largest", "最大"),
        ];
        Figure {
            title,
            caption,
            svg: chart.draw(),
            legend: Vec::new(),
            head: self.head(head.map(str::to_owned).to_vec()),
            rows,
        }
    }

    /// One figure per scope: two scopes never share an axis.
    fn memory(&self) -> Vec<Figure> {
        let title = self.say("Memory over time", "内存随时间变化");
        let has = |scope| self.source.arms.iter().any(|arm| arm.series.memory.iter().any(|line| line.scope == scope));
        let figures: Vec<Figure> =
            Scope::ALL.into_iter().filter(|scope| has(*scope)).map(|scope| self.memory_figure(title, scope)).collect();
        if figures.is_empty() {
            let why = self.say("Not shown: no memory was sampled.", "未绘制：没有采样到内存数据。");
            return vec![absent(title, why)];
        }
        figures
    }

    fn memory_figure(&self, title: &str, scope: Scope) -> Figure {
        let of = |arm: &Arm| arm.series.memory.iter().find(|line| line.scope == scope).cloned();
        let name = scope.title().get(self.lang).to_owned();
        let title = self.words(format!("{title}: {name}"), format!("{title}：{name}"));
        let mut chart = Chart {
            id: format!("{}-{}", self.id, scope.name()),
            title: title.clone(),
            x: Axis {
                title: self.say("time within the measured passes, s", "测量轮次内的时间，s").to_owned(),
                zero: true,
                ..Axis::default()
            },
            y: Axis { title: format!("{name}{}", scope.unit().replace(' ', ", ")), ..Axis::default() },
            ..Chart::default()
        };
        let (mut rows, mut described) = (Vec::new(), Vec::new());
        for (style, arm) in self.source.arms.iter().enumerate() {
            let Some(line) = of(arm) else { continue };
            let values: Vec<f64> = line.passes.iter().flatten().map(|point| point.1).collect();
            let peak = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            described.push(self.words(
                format!("{}: peak {}{}", arm.name, number(peak), scope.unit()),
                format!("{}：峰值 {}{}", arm.name, number(peak), scope.unit()),
            ));
            for (pass, points) in line.passes.iter().enumerate() {
                rows.extend(
                    points
                        .iter()
                        .map(|point| vec![arm.name.clone(), (pass + 1).to_string(), number(point.0), number(point.1)]),
                );
            }
            chart.lines.push(Line { style, stretches: line.passes, ..Line::default() });
        }
        chart.description = described.join("; ");
        let head =
            [self.say("pass", "轮次"), self.say("second", "秒"), chart.y.title.as_str()].map(str::to_owned).to_vec();
        Figure {
            caption: self.say(
                "The measured passes of an arm one after the other, a line each; long series are thinned, peaks kept. The axis need not begin at zero.",
                "每组的测量轮次依次排列，每轮一条线；较长的序列经过抽稀并保留峰值。纵轴不一定从零开始。",
            ).to_owned(),
            svg: chart.draw(),
            legend: self.legend(|arm| of(arm).is_some()),
            head: self.head(head),
            rows,
            title,
        }
    }

    /// The requests of one pass: waiting, prefill, decode.
    fn requests(&self, index: usize, arm: &Arm) -> Figure {
        let known = &arm.series.timeline;
        let title = self.words(format!("Requests over time: {}", arm.name), format!("请求时间线：{}", arm.name));
        let (shown, of, pass) = (known.bars.len(), known.of, known.pass);
        let sampled = if shown < of {
            self.words(
                format!(" {shown} of its {of} requests, evenly chosen."),
                format!("从 {of} 个请求中均匀抽取 {shown} 个。"),
            )
        } else {
            self.words(format!(" All {of} requests."), format!("共 {of} 个请求，全部显示。"))
        };
        let queue = if known.bars.iter().any(|bar| bar.queue.is_some()) {
            ""
        } else {
            self.say(
                " The server tells no queue time: its waiting is inside prefill.",
                "服务端未提供排队时间，排队计入预填充。",
            )
        };
        let caption = self.words(
            format!("First measured pass (number {pass}); one row a request, in the order of sending.{sampled}{queue}"),
            format!("第一个测量轮次（编号 {pass}），每行一个请求，按发送顺序排列。{sampled}{queue}"),
        );
        let ends = known.bars.iter().map(|bar| bar.sent + bar.e2e.unwrap_or(0.0)).fold(0.0, f64::max);
        let described =
            self.words(format!("{of} requests in {} ms", number(ends)), format!("{} ms 内 {of} 个请求", number(ends)));
        let axis = self.say("time within the pass, s", "轮次内的时间，s");
        let svg = timeline(&format!("{}-time{index}", self.id), known, &title, &described, axis);
        let hatched = "<rect class=\"prefill-ground\" width=\"22\" height=\"12\"/>\
                       <path class=\"prefill-hatch\" d=\"M0 6L6 0M0 12L12 0M6 12L18 0M12 12L22 2M18 12L22 8\"/>";
        let solid = |class: &str| format!("<rect class=\"{class}\" width=\"22\" height=\"12\"/>");
        let parts = [
            (solid("queue"), self.say("waiting", "排队")),
            (hatched.to_owned(), self.say("prefill, hatched", "预填充（斜线）")),
            (solid("decode"), self.say("decode, solid", "解码（实色）")),
        ];
        let legend = parts.map(|(sample, name)| {
            format!("<li><svg width=\"22\" height=\"12\" aria-hidden=\"true\">{sample}</svg>{name}</li>")
        });
        let ms = |value: Option<f64>| value.map_or("—".to_owned(), number);
        let rows = known.bars.iter().map(|bar| {
            let fault = bar.fault.clone().unwrap_or("—".to_owned());
            vec![
                bar.id.clone(),
                number(bar.scheduled),
                number(bar.sent),
                ms(bar.queue),
                ms(bar.ttft),
                ms(bar.e2e),
                fault,
            ]
        });
        let head = [
            self.say("request", "请求"),
            self.say("planned ms", "计划 ms"),
            self.say("sent ms", "发送 ms"),
            self.say("queue ms", "排队 ms"),
            "TTFT ms",
            "E2E ms",
            self.say("failure", "失败原因"),
        ];
        Figure {
            caption: if svg.is_some() {
                caption
            } else {
                self.say("Not shown: no request of this arm was measured.", "未绘制：该组没有测量到请求。").to_owned()
            },
            svg,
            legend: legend.to_vec(),
            head: head.map(str::to_owned).to_vec(),
            rows: rows.collect(),
            title,
        }
    }

    fn differences(&self) -> Figure {
        let title = self.say("Differences from the baseline", "与基线的差异").to_owned();
        let known = &self.source.differences;
        let described: Vec<String> = known.iter().map(|one| crate::report::text::sentence(one, self.lang)).collect();
        let id = format!("{}-forest", self.id);
        let svg = forest(&id, known, &title, &described.join("; "), self.lang);
        let caption = if svg.is_some() {
            let baseline = known.first().map(|one| one.baseline.clone()).unwrap_or_default();
            self.words(
                format!("Mean of the paired differences with its 95 % interval, relative to {baseline}. Inside the grey band a difference says nothing. For TTFT, TPOT and E2E less is better; for token/s more is."),
                format!("成对差异的均值及 95% 置信区间，相对基线 {baseline}。灰色带内的差异没有意义。TTFT、TPOT、E2E 越小越好，token/s 越大越好。"),
            )
        } else {
            self.say("Not shown: there are no paired passes yet.", "未绘制：还没有成对的轮次。").to_owned()
        };
        let rows = known.iter().map(|one| {
            let threshold = one.threshold.map_or("—".to_owned(), |share| percent(share).replace('+', "±"));
            vec![
                one.candidate.clone(),
                metric_title(&one.metric),
                one.pairs.to_string(),
                relative(one, self.lang),
                threshold,
                verdict(one.verdict, self.lang).to_owned(),
            ]
        });
        let head = [
            self.say("metric", "指标"),
            self.say("pairs", "成对轮数"),
            self.say("difference", "差异"),
            self.say("says nothing below", "无意义范围"),
            self.say("shows", "结论"),
        ];
        Figure {
            title,
            caption,
            svg,
            legend: Vec::new(),
            head: self.head(head.map(str::to_owned).to_vec()),
            rows: rows.collect(),
        }
    }
}

fn absent(title: &str, why: &str) -> Figure {
    Figure {
        title: title.to_owned(),
        caption: why.to_owned(),
        svg: None,
        legend: Vec::new(),
        head: Vec::new(),
        rows: Vec::new(),
    }
}

/// Where throughput stops to gain: the level before the first gain below 5 %.
fn knee(points: &[(u32, &Arm)]) -> Option<u32> {
    let rates: Vec<(u32, f64)> =
        points.iter().filter_map(|(level, arm)| Some((*level, arm.series.at_load[2]?[0]))).collect();
    rates.windows(2).find(|pair| pair[1].1 < pair[0].1 * (1.0 + KNEE)).map(|pair| pair[0].0)
}

/// The smallest value that a share of the sample does not exceed.
fn at_share(ascending: &[f64], share: f64) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let rank = (share * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.saturating_sub(1).min(last)).copied()
}

/// The steps of the distribution in percent, thinned where they are many.
fn steps(ascending: &[f64]) -> Vec<(f64, f64)> {
    let n = ascending.len();
    let shown = n.min(MAX_STEPS);
    let mut points: Vec<(f64, f64)> = ascending.first().map(|first| (*first, 0.0)).into_iter().collect();
    points.extend((1..=shown).map(|step| {
        let rank = (step * n).div_ceil(shown);
        (ascending[rank - 1], rank as f64 / n as f64 * 100.0)
    }));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_keeps_its_ends_however_long_it_is() {
        let sample: Vec<f64> = (1..=10_000).map(f64::from).collect();
        let steps = steps(&sample);
        assert_eq!((steps.len(), steps[0], steps[MAX_STEPS]), (MAX_STEPS + 1, (1.0, 0.0), (10_000.0, 100.0)));
        assert_eq!(at_share(&sample, 0.5), Some(5_000.0));
        assert_eq!(
            (at_share(&sample, 0.0), at_share(&sample, 1.0), at_share(&[], 0.5)),
            (Some(1.0), Some(10_000.0), None)
        );
    }
}
