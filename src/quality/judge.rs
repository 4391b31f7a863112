//! The judge: answers in, columns out. Pure.

use super::record::{
    AnswerRecord, ArmQuality, FieldRecord, Moment, ProbeRecord, Share, Stability, StructureRecord, Tier,
};
use super::set::{Place, Probe, ProbeSet, Structure};
use serde_json::Value;
use std::collections::BTreeMap;
use unicode_normalization::UnicodeNormalization;

/// The answers of one arm, by the id of the probe.
pub type Answers = BTreeMap<String, Vec<AnswerRecord>>;

/// Judges the answers of one arm; without `baseline` the arm is the baseline itself.
pub fn judge(set: &ProbeSet, answers: &Answers, baseline: Option<&Answers>) -> ArmQuality {
    let mut quality = ArmQuality { set: set.name.clone(), ..ArmQuality::default() };
    let none = Vec::new();
    for probe in &set.probes {
        let ours = answers.get(&probe.spec.id).unwrap_or(&none);
        let theirs = baseline.map(|answers| answers.get(&probe.spec.id).unwrap_or(&none).as_slice());
        quality.probes.push(judge_probe(probe, ours, theirs));
    }
    sum_up(&mut quality);
    quality
}

/// The answer that stands for a probe: the first one given alone.
fn reference(answers: &[AnswerRecord]) -> Option<&str> {
    let alone = answers.iter().filter(|answer| answer.moment != Moment::UnderLoad);
    alone.filter_map(|answer| answer.text.as_deref()).next()
}

fn judge_probe(probe: &Probe, answers: &[AnswerRecord], baseline: Option<&[AnswerRecord]>) -> ProbeRecord {
    let ours = reference(answers);
    let theirs = baseline.and_then(reference);
    let both = ours.zip(theirs);
    ProbeRecord {
        id: probe.spec.id.clone(),
        answers: answers.to_vec(),
        stability: stability(answers),
        exact: both.map(|(ours, theirs)| ours == theirs),
        prefix_chars: both.map(|(ours, theirs)| common_prefix(ours, theirs)),
        prefix_share: both.map(|(ours, theirs)| prefix_share(ours, theirs)),
        structure: probe.structure.as_ref().zip(ours).map(|(structure, text)| check_structure(structure, text)),
        fields: probe
            .fields
            .iter()
            .map(|(field, place)| {
                let texts: Vec<&str> = answers.iter().filter_map(|answer| answer.text.as_deref()).collect();
                let wanted = theirs.and_then(|text| extract(place, text));
                let found = ours.and_then(|text| extract(place, text));
                // A value that flips under load is as wrong as one that flips alone.
                let all: Vec<Option<String>> = texts.iter().map(|text| extract(place, text)).collect();
                let agrees = wanted.as_ref().filter(|_| ours.is_some()).map(|wanted| {
                    all.iter().all(|found| found.as_ref().is_some_and(|found| same(field.tier, found, wanted)))
                });
                FieldRecord {
                    name: field.name.clone(),
                    tier: field.tier,
                    correct: field
                        .expected
                        .as_ref()
                        .filter(|_| ours.is_some())
                        .map(|right| found.as_ref().is_some_and(|found| same(field.tier, found, right))),
                    found,
                    baseline: wanted,
                    agrees,
                }
            })
            .collect(),
    }
}

fn stability(answers: &[AnswerRecord]) -> Stability {
    let at = |alone: bool| {
        answers
            .iter()
            .filter(move |answer| (answer.moment != Moment::UnderLoad) == alone)
            .filter_map(|answer| answer.text.as_deref())
            .collect::<Vec<_>>()
    };
    let (alone, loaded) = (at(true), at(false));
    match alone.first() {
        Some(first) if alone.iter().any(|text| text != first) => Stability::DiffersAlone,
        Some(first) if loaded.iter().any(|text| text != first) => Stability::DiffersUnderLoad,
        Some(_) if alone.len() + loaded.len() > 1 => Stability::Stable,
        _ => Stability::NotRepeated,
    }
}

/// Characters that two texts share from their beginning.
fn common_prefix(a: &str, b: &str) -> u32 {
    let shared = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    u32::try_from(shared).unwrap_or(u32::MAX)
}

fn check_structure(structure: &Structure, text: &str) -> StructureRecord {
    let text = text.trim();
    let mut faults = Vec::new();
    if structure.json {
        match serde_json::from_str::<Value>(text) {
            Err(error) => faults.push(json_fault(text, &error)),
            Ok(value) => faults.extend(structure.schema.iter().flat_map(|schema| against(schema, &value))),
        }
    }
    if structure.regex.as_ref().is_some_and(|regex| !regex.is_match(text)) {
        faults.push("the answer does not match its pattern from beginning to end".to_owned());
    }
    StructureRecord { valid: faults.is_empty(), faults }
}

/// A text behind a whole document is its own fault: a parser that stops early hides it.
fn json_fault(text: &str, error: &serde_json::Error) -> String {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match documents.next() {
        Some(Ok(_)) => "there is text behind the JSON document".to_owned(),
        _ => format!("no JSON document: {error}"),
    }
}

fn against(schema: &Value, value: &Value) -> Vec<String> {
    match jsonschema::validator_for(schema) {
        Ok(validator) => {
            let fault = |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path());
            validator.iter_errors(value).map(fault).collect()
        }
        Err(error) => vec![format!("the schema is none: {error}")],
    }
}

/// The field in an answer; a JSON text without its quotes, any other value as written.
fn extract(place: &Place, text: &str) -> Option<String> {
    match place {
        Place::Pointer(pointer) => {
            let value: Value = serde_json::from_str(text.trim()).ok()?;
            match value.pointer(pointer)? {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            }
        }
        Place::Pattern(regex) => {
            let found = regex.captures(text)?;
            found.get(1).or_else(|| found.get(0)).map(|part| part.as_str().to_owned())
        }
    }
}

/// Whether two values of a field are the same by the rule of its tier.
fn same(tier: Tier, a: &str, b: &str) -> bool {
    match tier {
        Tier::Critical => a == b,
        Tier::Normal | Tier::Informative => normalized(a) == normalized(b),
    }
}

/// Width, case and spaces do not matter.
fn normalized(text: &str) -> String {
    let text: String = text.nfkc().collect();
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn sum_up(quality: &mut ArmQuality) {
    let (mut nll, mut tokens) = (0.0, 0);
    let mut prefixes = Vec::new();
    let probes = std::mem::take(&mut quality.probes);
    for probe in &probes {
        if let Some(exact) = probe.exact {
            quality.exact.add(exact);
        }
        if let Some(structure) = &probe.structure {
            quality.structure.add(structure.valid);
        }
        probe.fields.iter().for_each(|field| add_field(quality, field));
        add_stability(quality, probe);
        prefixes.extend(probe.prefix_share);
        // Once per probe: the answer that was given alone.
        let alone = probe.answers.iter().find(|answer| answer.moment != Moment::UnderLoad && answer.tokens > 0);
        if let Some((loss, count)) = alone.and_then(|answer| Some((answer.log_loss?, answer.tokens))) {
            nll += loss * count as f64;
            tokens += count;
        }
    }
    quality.probes = probes;
    quality.prefix_mean = (!prefixes.is_empty()).then(|| prefixes.iter().sum::<f64>() / prefixes.len() as f64);
    quality.log_loss = (tokens > 0).then(|| nll / tokens as f64);
    quality.log_loss_tokens = tokens;
}

fn add_field(quality: &mut ArmQuality, field: &FieldRecord) {
    let share = match field.tier {
        Tier::Critical => Some(&mut quality.critical_fields),
        Tier::Normal => Some(&mut quality.normal_fields),
        Tier::Informative => None,
    };
    if let (Some(share), Some(agrees)) = (share, field.agrees) {
        share.add(agrees);
    }
    if let Some(correct) = field.correct {
        quality.correct_fields.add(correct);
    }
}

fn add_stability(quality: &mut ArmQuality, probe: &ProbeRecord) {
    let asked = |loaded: bool| {
        probe
            .answers
            .iter()
            .filter(|answer| answer.text.is_some() && (answer.moment == Moment::UnderLoad) == loaded)
            .count()
    };
    if asked(false) > 1 {
        quality.stable_alone.add(probe.stability != Stability::DiffersAlone);
    }
    if asked(true) > 0 && asked(false) > 0 {
        let first = reference(&probe.answers);
        let same = probe
            .answers
            .iter()
            .filter(|answer| answer.moment == Moment::UnderLoad)
            .all(|answer| answer.text.as_deref() == first);
        quality.stable_under_load.add(same);
    }
}

/// The common prefix as a share of the longer answer.
fn prefix_share(ours: &str, theirs: &str) -> f64 {
    let longer = ours.chars().count().max(theirs.chars().count());
    if longer == 0 { 1.0 } else { f64::from(common_prefix(ours, theirs)) / longer as f64 }
}

/// Share of probes in which each field agreed, as results keep it; `None`: not compared.
pub fn field_agreement(quality: &ArmQuality) -> Vec<(String, Tier, Share)> {
    let mut fields: BTreeMap<(Tier, String), Share> = BTreeMap::new();
    for field in quality.probes.iter().flat_map(|probe| &probe.fields) {
        let share = fields.entry((field.tier, field.name.clone())).or_default();
        if let Some(agrees) = field.agrees {
            share.add(agrees);
        }
    }
    fields.into_iter().map(|((tier, name), share)| (name, tier, share)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &str = r#"
name = "t"
[[probe]]
id = "pay"
prompt = "p"
[[probe.field]]
name = "amount"
tier = "critical"
pattern = '(\d+\.\d\d)'
expected = "12.50"
[[probe.field]]
name = "payee"
tier = "normal"
pattern = 'to (\S+ \S+?)\.'
[[probe]]
id = "json"
prompt = "p"
[probe.structure]
schema = '{"type":"object","required":["a"]}'
[[probe.field]]
name = "a"
tier = "critical"
pointer = "/a"
"#;

    fn set() -> ProbeSet {
        ProbeSet::parse(SET.as_bytes(), "t.toml").unwrap()
    }

    fn answer(moment: Moment, text: &str) -> AnswerRecord {
        AnswerRecord { moment, text: Some(text.to_owned()), fault: None, log_loss: Some(0.5), tokens: 4 }
    }

    fn answers(pay: &[(Moment, &str)], json: &str) -> Answers {
        let pay = pay.iter().map(|(moment, text)| answer(*moment, text)).collect();
        Answers::from([("pay".to_owned(), pay), ("json".to_owned(), vec![answer(Moment::Before, json)])])
    }

    #[test]
    fn one_changed_character_of_an_amount_is_critical_and_width_of_a_name_is_not() {
        let baseline = answers(&[(Moment::Before, "Pay 12.50 to Ann Lee.")], "{\"a\":1}");
        let same = answers(&[(Moment::Before, "Pay 12.50 to ＡＮＮ lee.")], "{\"a\":1}");
        let quality = judge(&set(), &same, Some(&baseline));
        assert_eq!(quality.critical_fields, Share { count: 2, of: 2 });
        assert_eq!(quality.normal_fields, Share { count: 1, of: 1 });
        assert_eq!(quality.exact, Share { count: 1, of: 2 });
        let changed = answers(&[(Moment::Before, "Pay 12.60 to Ann Lee.")], "{\"a\":1}");
        let quality = judge(&set(), &changed, Some(&baseline));
        assert_eq!(quality.critical_fields, Share { count: 1, of: 2 });
        assert_eq!(quality.correct_fields, Share { count: 0, of: 1 });
        let amount = &quality.probes[0].fields[0];
        assert_eq!((amount.found.as_deref(), amount.baseline.as_deref()), (Some("12.60"), Some("12.50")));
        assert_eq!(quality.probes[0].prefix_chars, Some(7));
    }

    #[test]
    fn a_critical_field_that_flips_only_under_load_is_changed() {
        let baseline = answers(&[(Moment::Before, "Pay 12.50 to Ann Lee.")], "{}");
        let loaded = answers(
            &[
                (Moment::Before, "Pay 12.50 to Ann Lee."),
                (Moment::UnderLoad, "Pay 12.5 to Ann Lee."),
                (Moment::After, "Pay 12.50 to Ann Lee."),
            ],
            "{}",
        );
        let quality = judge(&set(), &loaded, Some(&baseline));
        assert_eq!(quality.critical_fields, Share { count: 0, of: 1 });
        assert_eq!(quality.probes[0].stability, Stability::DiffersUnderLoad);
        assert_eq!(
            (quality.stable_alone, quality.stable_under_load),
            (Share { count: 1, of: 1 }, Share { count: 0, of: 1 })
        );
    }

    #[test]
    fn what_the_baseline_does_not_say_is_not_compared() {
        let baseline = answers(&[(Moment::Before, "I cannot.")], "no json");
        let ours = answers(&[(Moment::Before, "Pay 12.50 to Ann Lee.")], "{\"a\":1}");
        let quality = judge(&set(), &ours, Some(&baseline));
        assert_eq!(quality.critical_fields, Share::default());
        assert_eq!(field_agreement(&quality)[0].2.value(), None);
        let alone = judge(&set(), &ours, None);
        assert_eq!((alone.exact, alone.prefix_mean), (Share::default(), None));
        assert_eq!(alone.correct_fields, Share { count: 1, of: 1 });
    }

    #[test]
    fn text_behind_a_document_and_a_missing_member_are_faults_of_structure() {
        let faults = |json: &str| {
            let quality = judge(&set(), &answers(&[], json), None);
            quality.probes[1].structure.clone().unwrap().faults
        };
        assert_eq!(faults(" {\"a\": 1}\n"), Vec::<String>::new());
        assert_eq!(faults("{\"a\": 1} Enjoy!"), ["there is text behind the JSON document"]);
        assert!(faults("{\"b\": 1}")[0].contains("required"));
        assert!(faults("```json\n{\"a\": 1}\n```")[0].starts_with("no JSON document"));
    }

    #[test]
    fn the_loss_is_the_mean_over_tokens_of_the_answers_given_alone() {
        let mut both = answers(&[(Moment::UnderLoad, "x"), (Moment::Before, "y")], "{}");
        both.get_mut("pay").unwrap()[1].log_loss = Some(1.0);
        both.get_mut("pay").unwrap()[1].tokens = 12;
        let quality = judge(&set(), &both, None);
        assert_eq!((quality.log_loss, quality.log_loss_tokens), (Some((12.0 + 2.0) / 16.0), 16));
    }

    #[test]
    fn a_prefix_counts_characters_of_the_longer_answer() {
        assert_eq!(common_prefix("héllo", "héLlo"), 2);
        assert_eq!((common_prefix("", "a"), prefix_share("ab", "abcd"), prefix_share("", "")), (0, 0.5, 1.0));
    }
}
