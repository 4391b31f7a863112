//! What a server's log says about its end: signatures of known causes, each with one
//! concrete next step. The whole log is searched, most specific signature first; the
//! last line is rarely the cause.

use crate::model::Text;

/// A known cause.
#[derive(Debug)]
pub struct Signature {
    /// Stable name.
    pub id: &'static str,
    /// Texts of which one must occur (ASCII case ignored).
    pub needles: &'static [&'static str],
    /// What happened.
    pub cause: Text,
    /// What to do.
    pub advice: Text,
}

/// A cause found in a log, with the line it rests on.
#[derive(Debug)]
pub struct Diagnosis {
    /// The signature.
    pub signature: &'static Signature,
    /// The line of the log.
    pub line: String,
}

/// Characters of a log line that are quoted.
const MAX_QUOTE: usize = 240;

macro_rules! signatures {
    ($($id:literal [$($needle:literal),+] { $cen:literal / $czh:literal; $aen:literal / $azh:literal; })*) => {
        &[$(Signature {
            id: $id,
            needles: &[$($needle),+],
            cause: Text { en: $cen, zh: $czh },
            advice: Text { en: $aen, zh: $azh },
        }),*]
    };
}

/// Most specific first.
pub static SIGNATURES: &[Signature] = signatures! {
    "kv-cache-too-small" ["KV cache is needed, which is larger than the available", "larger than the maximum number of tokens that can be stored in KV cache"] {
        "the KV cache is smaller than the context length asked for" / "KV cache 放不下所要求的上下文长度";
        "lower the maximum model length to the estimate in the log line" / "把最大模型长度降到日志行给出的估计值";
    }
    "no-kv-memory" ["No available memory for the cache blocks"] {
        "no memory is left for the KV cache" / "没有剩余显存可用于 KV cache";
        "raise the memory share of the server, or take a smaller or quantized model" / "提高服务的显存占比，或换更小的、量化的模型";
    }
    "cuda-out-of-memory" ["CUDA out of memory", "torch.OutOfMemoryError", "CUDA error: out of memory"] {
        "CUDA out of memory: weights or activations do not fit" / "CUDA out of memory：权重或激活放不下";
        "see which processes hold the GPU, lower the memory share, or take a smaller or quantized model" / "查看哪些进程占用显存，降低显存占比，或换更小的、量化的模型";
    }
    "context-too-long" ["is greater than the derived max_model_len"] {
        "the context length is larger than the model was trained for" / "上下文长度超过模型训练时的长度";
        "set at most max_position_embeddings of the model" / "不要超过模型的 max_position_embeddings";
    }
    "no-bfloat16" ["Bfloat16 is only supported on GPUs with compute capability"] {
        "this GPU has no bfloat16" / "该 GPU 不支持 bfloat16";
        "use float16" / "改用 float16";
    }
    "driver-too-old" ["NVIDIA driver on your system is too old"] {
        "the NVIDIA driver is older than the CUDA build needs" / "NVIDIA 驱动版本低于 CUDA 构建的要求";
        "update the driver, or install a build for the driver's CUDA version" / "更新驱动，或安装与驱动 CUDA 版本匹配的构建";
    }
    "cuda-forward-compatibility" ["Error 804: forward compatibility", "Error 802: system not yet initialized"] {
        "CUDA of the container and driver do not fit, or the fabric manager is not running" / "容器的 CUDA 与驱动不匹配，或 fabric manager 没有运行";
        "take another image, or start nvidia-fabricmanager" / "换镜像，或启动 nvidia-fabricmanager";
    }
    "port-in-use" ["[Errno 98]", "couldn't bind HTTP server socket", "address already in use", "EADDRINUSE"] {
        "the port is in use" / "端口已被占用（in use）";
        "leave the port to verify, or stop the program that holds it" / "让 verify 选择端口，或停掉占用它的程序";
    }
    "rpc-port-in-use" ["is used by a process already"] {
        "a process of an earlier run still holds a port" / "先前运行留下的进程还占着端口";
        "stop the process that the log line names" / "结束日志行指出的进程";
    }
    "gated-model" ["gated repo", "401 Client Error"] {
        "the model is gated: there is no access, or no token" / "模型有访问限制：没有权限或没有 token";
        "accept the licence on the model's page and set HF_TOKEN, or give a local folder" / "在模型页面接受许可并设置 HF_TOKEN，或使用本地文件夹";
    }
    "offline" ["outgoing traffic has been disabled"] {
        "offline mode is on and the model is not in the cache" / "处于离线模式，且模型不在缓存中";
        "download the model first, or give a local folder" / "请先下载模型，或使用本地文件夹";
    }
    "no-network" ["couldn't connect to 'https://", "Name or service not known", "Temporary failure in name resolution"] {
        "there is no network to fetch the model" / "没有网络，无法获取模型";
        "give a local folder, or use a mirror" / "使用本地文件夹或镜像";
    }
    "no-such-model" ["Repo id must be in the form"] {
        "the model is neither a folder that exists nor an id" / "模型既不是存在的文件夹，也不是合法的 id";
        "check the path of the model" / "检查模型路径";
    }
    "no-config" ["ensure the presence of a 'config.json'", "does not appear to have a file named config.json"] {
        "the folder holds no config.json: it is no model folder" / "文件夹里没有 config.json，不是模型文件夹";
        "give the folder that holds config.json and the weights" / "请给出包含 config.json 和权重的文件夹";
    }
    "no-tokenizer" ["sentencepiece or tiktoken", "Can't load tokenizer"] {
        "the tokenizer's files are missing" / "缺少 tokenizer 文件";
        "add tokenizer.json (or tokenizer.model) to the model's folder" / "把 tokenizer.json（或 tokenizer.model）放进模型文件夹";
    }
    "truncated-weights" ["file not fully covered", "data is not within the file bounds", "model is corrupted or incomplete", "MetadataIncompleteBuffer"] {
        "a weights file is truncated" / "权重文件不完整";
        "delete that file and download it again" / "删除该文件并重新下载";
    }
    "remote-code" ["trust_remote_code=True"] {
        "the model brings code of its own" / "模型自带代码";
        "read that code; allow it only explicitly and with a pinned revision" / "请先审阅代码；只有显式允许并固定版本后才启用";
    }
    "unknown-architecture" ["does not recognize this architecture", "unknown model architecture"] {
        "the server is older than the model's architecture" / "服务版本早于该模型结构";
        "update the server, or take another model" / "更新服务，或换一个模型";
    }
    "no-quantization-config" ["Cannot find the config file for"] {
        "quantization was asked for and the weights are not quantized" / "要求量化，但权重并未量化";
        "give the quantized artifact" / "请使用量化后的模型";
    }
    "unknown-flag" ["unrecognized arguments", "invalid argument:", "the argument has been removed", "no such option"] {
        "this version of the server does not know an argument" / "该版本的服务不认识某个参数";
        "compare with the server's own help; the log line names the argument" / "对照服务自己的帮助；日志行写明了是哪个参数";
    }
    "draft-model" ["failed to load draft model", "Invalid repository ID or local directory specified"] {
        "the draft model is missing" / "缺少草稿模型";
        "give an existing draft model" / "请给出存在的草稿模型";
    }
    "kv-buffer" ["failed to allocate buffer for kv cache"] {
        "the KV cache cannot be allocated" / "无法分配 KV cache";
        "lower the context length" / "降低上下文长度";
    }
    "model-not-loaded" ["failed to load model from", "failed to load model,", "error loading model"] {
        "the model file is missing, is a folder, or is no GGUF file" / "模型文件不存在、是文件夹，或不是 GGUF 文件";
        "check that the file exists and begins with GGUF" / "确认文件存在且以 GGUF 开头";
    }
    "disk-full" ["No space left on device", "Not enough free disk space"] {
        "the disk is full" / "磁盘已满";
        "free some room and try again" / "腾出空间后重试";
    }
    "wrong-model-name" ["does not exist. Valid aliases"] {
        "the served name differs from the one asked for" / "服务的模型名与请求的不一致";
        "set `served_model` to the alias in the log line" / "把 `served_model` 设为日志行中的别名";
    }
    "prompt-too-long" ["exceed_context_size_error", "cannot be greater than max_model_len", "maximum context length is"] {
        "a prompt is longer than the server's context" / "有提示词超过服务的上下文长度";
        "shorten the prompt or raise the context length" / "缩短提示词或提高上下文长度";
    }
    "no-package-metadata" ["No package metadata was found for"] {
        "a Python package was renamed and its metadata is missing" / "Python 包被改名，缺少元数据";
        "install the package under the name in the log line" / "请安装日志行中名字对应的包";
    }
    "module-missing" ["ModuleNotFoundError: No module named", "ImportError:"] {
        "a Python module is missing" / "缺少 Python 模块";
        "install it into the server's environment" / "把它安装到服务的环境里";
    }
    "engine-died" ["EngineCore encountered an issue", "EngineDeadError", "Engine core initialization failed"] {
        "the engine behind the API server died; the cause stands above that line" / "API 服务背后的引擎已退出；根因在该行之上";
        "read the log above the line" / "请查看该行之前的日志";
    }
};

/// The cause of an end, from the cleaned log.
pub fn diagnose(log: &str) -> Option<Diagnosis> {
    let lowered = log.to_ascii_lowercase();
    SIGNATURES.iter().find_map(|signature| {
        let at = signature.needles.iter().find_map(|needle| lowered.find(&needle.to_ascii_lowercase()))?;
        let start = log[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = log[start..].lines().next().unwrap_or_default();
        Some(Diagnosis { signature, line: shorten(line) })
    })
}

/// The last line with something on it, when no signature fits.
pub fn last_words(log: &str) -> Option<String> {
    log.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(shorten)
}

fn shorten(line: &str) -> String {
    let line = line.trim();
    if line.chars().count() <= MAX_QUOTE {
        return line.to_owned();
    }
    line.chars().take(MAX_QUOTE).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_found_above_the_last_line() {
        let log = "loading\nValueError: To serve at least one request, 4.5 GiB KV cache is needed, which is larger than the available KV cache memory (1 GiB)\nRuntimeError: Engine core initialization failed. See root cause above.\n";
        let found = diagnose(log).unwrap();
        assert_eq!(found.signature.id, "kv-cache-too-small");
        assert!(found.line.starts_with("ValueError: To serve"));
        assert!(diagnose("all is well").is_none());
        assert_eq!(last_words("a\n b \n\n").as_deref(), Some("b"));
    }

    #[test]
    fn every_signature_is_found_by_its_own_words() {
        for signature in SIGNATURES {
            for needle in signature.needles {
                assert_eq!(diagnose(&format!("x\nE: {needle} y")).unwrap().signature.id, signature.id, "{needle}");
            }
        }
    }
}
