//! Which precision a server is asked for, why, and what it says it took. The model's
//! own, unless the device cannot compute in it: bfloat16 needs compute capability 8.0
//! (<https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions>).

use super::doctor::{Capability, Gpu};
use serde::Serialize;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

/// The chain from a wish to a fact, as results keep it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Dtype {
    /// What the user asked for: `auto`, or a name.
    pub requested: String,
    /// What the model's files state.
    pub of_model: Option<String>,
    /// What the server is asked for; none: left to it.
    pub chosen: Option<String>,
    /// Why.
    pub reason: String,
}

impl Dtype {
    /// The argument for a server: a floating-point type, or `auto`. The file type of a
    /// GGUF is none that a server could be asked for.
    pub fn argument(&self) -> &str {
        self.chosen.as_deref().filter(|name| FLOATS.contains(name)).unwrap_or("auto")
    }
}

/// Names that servers take for `--dtype`.
const FLOATS: [&str; 5] = ["bfloat16", "float16", "half", "float32", "float"];
/// The first GPUs with bfloat16.
const BFLOAT16: Capability = Capability { major: 8, minor: 0 };

/// Chooses the precision. `gpus` are those that the server may use; none: the processor.
pub fn choose(requested: &str, of_model: Option<String>, gpus: &[Gpu]) -> Dtype {
    let oldest = gpus.iter().filter_map(|gpu| Some((gpu.capability?, gpu))).min_by_key(|(capability, _)| *capability);
    let (chosen, reason) = match (requested, of_model.as_deref(), oldest) {
        ("auto" | "", None, _) => (None, "the model states none: left to the server".to_owned()),
        ("auto" | "", Some("bfloat16"), Some((capability, gpu))) if capability < BFLOAT16 => (
            Some("float16".to_owned()),
            format!("the model's own is bfloat16, which {} (compute capability {capability}) does not have", gpu.name),
        ),
        ("auto" | "", Some(own), _) => (Some(own.to_owned()), "the model's own".to_owned()),
        (asked, ..) => (Some(asked.to_owned()), "asked for".to_owned()),
    };
    let requested = if requested.is_empty() { "auto" } else { requested }.to_owned();
    Dtype { requested, of_model, chosen, reason }
}

/// What a model's files state: `dtype` (once `torch_dtype`) of config.json, the file
/// type of a GGUF.
pub fn of_model(path: &Path) -> Option<String> {
    if path.extension().is_some_and(|extension| extension == "gguf") {
        return gguf_file_type(path);
    }
    let config: Value = serde_json::from_str(&fs::read_to_string(path.join("config.json")).ok()?).ok()?;
    // Models of several parts keep that of their text part below it.
    let stated = [&config, &config["text_config"], &config["llm_config"]]
        .into_iter()
        .find_map(|part| part["dtype"].as_str().or_else(|| part["torch_dtype"].as_str()))?;
    Some(stated.strip_prefix("torch.").unwrap_or(stated).to_owned())
}

/// What a server reported: `meta.ftype` in its list of models (llama.cpp), else
/// `dtype=torch.X` in its log (vLLM).
pub fn reported(entry: &Value, log: &str) -> Option<String> {
    let stated = entry["meta"]["ftype"].as_str().map(str::trim).filter(|stated| !stated.is_empty());
    stated.map(str::to_ascii_lowercase).or_else(|| {
        let (_, rest) = log.split_once("dtype=torch.")?;
        let name: String = rest.chars().take_while(|character| character.is_ascii_alphanumeric()).collect();
        (!name.is_empty()).then_some(name)
    })
}

/// Metadata beyond this is not read; the file type stands near the beginning.
const MAX_METADATA: u64 = 64 << 20;

/// `general.file_type` of a GGUF file
/// (<https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>).
fn gguf_file_type(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let mut reader = BufReader::new(file);
    let mut header = [0; 24];
    reader.read_exact(&mut header).ok()?;
    if !header.starts_with(b"GGUF") {
        return None;
    }
    let pairs = u64::from_le_bytes(header[16..24].try_into().ok()?);
    for _ in 0..pairs.min(10_000) {
        let key = text(&mut reader).ok()?;
        let kind = number(&mut reader, 4).ok()?;
        if key == b"general.file_type" && matches!(kind, 4 | 5) {
            return file_type_name(number(&mut reader, 4).ok()?).map(str::to_owned);
        }
        skip(&mut reader, kind, 0).ok()?;
        if reader.stream_position().ok()? > MAX_METADATA {
            return None;
        }
    }
    None
}

/// A little-endian number of up to eight bytes.
fn number(reader: &mut impl Read, bytes: usize) -> io::Result<u64> {
    let mut buffer = [0; 8];
    reader.read_exact(&mut buffer[..bytes])?;
    Ok(u64::from_le_bytes(buffer))
}

fn text(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = number(reader, 8)?;
    if length > MAX_METADATA {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Passes over a value.
fn skip(reader: &mut BufReader<File>, kind: u64, depth: u32) -> io::Result<()> {
    let width = match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        8 => i64::try_from(number(reader, 8)?).unwrap_or(i64::MAX),
        9 if depth < 4 => {
            let kind = number(reader, 4)?;
            let count = number(reader, 8)?;
            for _ in 0..count {
                skip(reader, kind, depth + 1)?;
                if reader.stream_position()? > MAX_METADATA {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
            return Ok(());
        }
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    if width > MAX_METADATA as i64 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    reader.seek_relative(width)
}

/// The names of llama.cpp's `llama_ftype`.
fn file_type_name(number: u64) -> Option<&'static str> {
    Some(match number {
        0 => "f32",
        1 => "f16",
        2 => "q4_0",
        3 => "q4_1",
        7 => "q8_0",
        8 => "q5_0",
        9 => "q5_1",
        10 => "q2_k",
        11 => "q3_k_s",
        12 => "q3_k_m",
        13 => "q3_k_l",
        14 => "q4_k_s",
        15 => "q4_k_m",
        16 => "q5_k_s",
        17 => "q5_k_m",
        18 => "q6_k",
        19 => "iq2_xxs",
        20 => "iq2_xs",
        21 => "q2_k_s",
        22 => "iq3_xs",
        23 => "iq3_xxs",
        24 => "iq1_s",
        25 => "iq4_nl",
        26 => "iq3_s",
        27 => "iq3_m",
        28 => "iq2_s",
        29 => "iq2_m",
        30 => "iq4_xs",
        31 => "iq1_m",
        32 => "bf16",
        36 => "tq1_0",
        37 => "tq2_0",
        38 => "mxfp4",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn gpu(major: i32, minor: i32) -> Gpu {
        Gpu { name: format!("GPU {major}.{minor}"), capability: Some(Capability { major, minor }), ..Gpu::default() }
    }

    fn chosen(requested: &str, of_model: Option<&str>, gpus: &[Gpu]) -> (Option<String>, String) {
        let dtype = choose(requested, of_model.map(str::to_owned), gpus);
        (dtype.chosen.clone(), dtype.reason)
    }

    #[test]
    fn the_models_own_unless_the_device_cannot() {
        let (t4, h200) = (gpu(7, 5), gpu(9, 0));
        assert_eq!(chosen("auto", Some("bfloat16"), &[]).0.as_deref(), Some("bfloat16"));
        assert_eq!(chosen("auto", Some("bfloat16"), std::slice::from_ref(&h200)).0.as_deref(), Some("bfloat16"));
        let (old, reason) = chosen("auto", Some("bfloat16"), &[h200.clone(), t4.clone()]);
        assert!(
            old.as_deref() == Some("float16") && reason.contains("GPU 7.5") && reason.contains("capability 7.5"),
            "{reason}"
        );
        assert_eq!(chosen("auto", Some("float32"), std::slice::from_ref(&t4)).0.as_deref(), Some("float32"));
        assert_eq!(chosen("bfloat16", Some("float16"), &[t4]), (Some("bfloat16".to_owned()), "asked for".to_owned()));
        assert_eq!(chosen("auto", None, &[h200]).0, None);
    }

    #[test]
    fn a_server_is_asked_for_floating_point_only() {
        let argument = |requested, of_model: Option<&str>| {
            choose(requested, of_model.map(str::to_owned), &[]).argument().to_owned()
        };
        assert_eq!(
            [argument("auto", Some("q4_1")), argument("", None), argument("auto", Some("float16"))],
            ["auto", "auto", "float16"]
        );
    }

    #[test]
    fn a_configuration_states_it_under_either_name() {
        let scratch = tempfile::tempdir().unwrap();
        let stated = |config: Value| {
            fs::write(scratch.path().join("config.json"), config.to_string()).unwrap();
            of_model(scratch.path())
        };
        assert_eq!(stated(json!({"dtype": "bfloat16", "torch_dtype": "float32"})).as_deref(), Some("bfloat16"));
        assert_eq!(stated(json!({"torch_dtype": "torch.float16"})).as_deref(), Some("float16"));
        assert_eq!(stated(json!({"text_config": {"dtype": "float32"}})).as_deref(), Some("float32"));
        assert_eq!(stated(json!({"dtype": null})), None);
    }

    /// A GGUF header: a text, an array of texts, then the file type.
    fn gguf(file_type: u32) -> Vec<u8> {
        let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend(3_u64.to_le_bytes());
        bytes.extend(text("general.name"));
        bytes.extend(8_u32.to_le_bytes());
        bytes.extend(text("推理"));
        bytes.extend(text("tokens"));
        bytes.extend(9_u32.to_le_bytes());
        bytes.extend(8_u32.to_le_bytes());
        bytes.extend(2_u64.to_le_bytes());
        bytes.extend([text("a"), text("")].concat());
        bytes.extend(text("general.file_type"));
        bytes.extend(4_u32.to_le_bytes());
        bytes.extend(file_type.to_le_bytes());
        bytes
    }

    #[test]
    fn a_gguf_names_its_file_type_and_a_cut_one_none() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("m.gguf");
        let whole = gguf(15);
        fs::write(&path, &whole).unwrap();
        assert_eq!(of_model(&path).as_deref(), Some("q4_k_m"));
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(of_model(&path), None, "{length}");
        }
        let mut huge = whole;
        huge[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        fs::write(&path, huge).unwrap();
        assert_eq!(of_model(&path), None);
    }

    #[test]
    fn servers_report_it_in_their_list_or_in_their_log() {
        assert_eq!(reported(&json!({"meta": {"ftype": "Q4_1"}}), "dtype=torch.float16").as_deref(), Some("q4_1"));
        let log = "INFO Initializing a V1 LLM engine with config: model='m', dtype=torch.bfloat16, max_seq_len=2048";
        assert_eq!(reported(&Value::Null, log).as_deref(), Some("bfloat16"));
        assert_eq!(reported(&Value::Null, "dtype=torch."), None);
    }
}
