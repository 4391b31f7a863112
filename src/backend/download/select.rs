//! Which files of a model a server needs. Pure.

use super::error::DownloadError;
use super::listing::RemoteFile;
use crate::backend::model::gguf_parts;
use crate::backend::model_id::ModelId;
use crate::model::Localized;

/// The files to fetch: the one GGUF file that was named (with its other parts), else
/// configuration, tokenizer and weights of the root folder, safetensors rather than
/// pickled `.bin`. Python code is among them only when its running was allowed.
pub(super) fn needed(
    files: &[RemoteFile],
    id: &ModelId,
    host: &str,
    with_code: bool,
) -> Result<Vec<RemoteFile>, DownloadError> {
    match &id.file {
        Some(file) => named(files, id, file, host),
        None => folder(files, id, with_code),
    }
}

fn named(files: &[RemoteFile], id: &ModelId, file: &str, host: &str) -> Result<Vec<RemoteFile>, DownloadError> {
    let (folder, name) = file.rsplit_once('/').map_or(("", file), |(folder, name)| (folder, name));
    let parts =
        gguf_parts(name).into_iter().map(|part| if folder.is_empty() { part } else { format!("{folder}/{part}") });
    let find = |path: String| {
        files.iter().find(|known| known.path == path).cloned().ok_or_else(|| DownloadError::NotFound {
            repo: id.repo.clone(),
            part: Some(path),
            host: host.to_owned(),
        })
    };
    parts.map(find).collect()
}

fn folder(files: &[RemoteFile], id: &ModelId, with_code: bool) -> Result<Vec<RemoteFile>, DownloadError> {
    let root: Vec<&RemoteFile> = files.iter().filter(|file| !file.path.contains('/')).collect();
    let any = |wanted: &dyn Fn(&str) -> bool| root.iter().any(|file| wanted(&file.path));
    let safetensors = |name: &str| name.ends_with(".safetensors");
    // Some repositories hold the same weights a second time, in their author's own layout.
    let usual = |name: &str| safetensors(name) && name.starts_with("model");
    let pickled = |name: &str| name.starts_with("pytorch_model") && name.ends_with(".bin");
    let weights: &dyn Fn(&str) -> bool = if any(&usual) {
        &usual
    } else if any(&safetensors) {
        &safetensors
    } else if any(&pickled) {
        &pickled
    } else {
        return Err(nothing(files, id));
    };
    let other_index = |name: &str| name.ends_with(".index.json") && any(&usual) && !name.starts_with("model");
    let described = |name: &str| {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        matches!(extension, "json" | "txt" | "model" | "jinja" | "tiktoken") || (with_code && extension == "py")
    };
    if !any(&|name| name == "config.json") {
        return Err(nothing(files, id));
    }
    let wanted = |name: &str| (weights(name) || described(name)) && !other_index(name);
    Ok(root.iter().filter(|file| wanted(&file.path)).copied().cloned().collect())
}

/// No model folder: a repository of GGUF files, or none at all.
fn nothing(files: &[RemoteFile], id: &ModelId) -> DownloadError {
    let gguf: Vec<&str> = files.iter().map(|file| file.path.as_str()).filter(|path| path.ends_with(".gguf")).collect();
    let Some(first) = gguf.first() else {
        return DownloadError::Nothing {
            cause: Localized::both(
                format!("{} holds no config.json with weights and no GGUF file", id.repo),
                format!("{} 中既没有带权重的 config.json，也没有 GGUF 文件", id.repo),
            ),
            advice: Localized::both("give the id of a language model", "请给出语言模型的 id"),
        };
    };
    let list = gguf.iter().take(12).copied().collect::<Vec<_>>().join(", ");
    let more = gguf.len().saturating_sub(12);
    let (more_en, more_zh) = if more == 0 {
        (String::new(), String::new())
    } else {
        (format!(" and {more} more"), format!(" 等另外 {more} 个"))
    };
    let repo = &id.repo;
    DownloadError::Nothing {
        cause: Localized::both(
            format!("{repo} holds GGUF files, one model each: {list}{more_en}"),
            format!("{repo} 中是 GGUF 文件，每个文件是一个模型：{list}{more_zh}"),
        ),
        advice: Localized::both(
            format!("name one of them, such as --model {repo}:{first}"),
            format!("请指定其中一个，例如 --model {repo}:{first}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Lang;

    fn chosen(paths: &[&str], id: &str, with_code: bool) -> Result<Vec<String>, DownloadError> {
        let files: Vec<RemoteFile> =
            paths.iter().map(|path| RemoteFile { path: (*path).to_owned(), size: None, digest: None }).collect();
        let found = needed(&files, &ModelId::parse(id).unwrap(), "h", with_code)?;
        Ok(found.into_iter().map(|file| file.path).collect())
    }

    #[test]
    fn safetensors_tokenizer_and_configuration_are_enough() {
        let paths = [
            ".gitattributes",
            "README.md",
            "config.json",
            "generation_config.json",
            "merges.txt",
            "modeling_x.py",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
            "consolidated.safetensors",
            "pytorch_model.bin",
            "pytorch_model.bin.index.json",
            "original/params.json",
            "tokenizer.json",
            "tokenizer.model",
            "chat_template.jinja",
            "onnx/model.onnx",
            "figure.png",
        ];
        let expected = [
            "config.json",
            "generation_config.json",
            "merges.txt",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
            "tokenizer.json",
            "tokenizer.model",
            "chat_template.jinja",
        ];
        assert_eq!(chosen(&paths, "o/n", false).unwrap(), expected);
        assert!(chosen(&paths, "o/n", true).unwrap().contains(&"modeling_x.py".to_owned()));
    }

    #[test]
    fn pickled_weights_only_where_there_are_no_others() {
        let paths = [
            "config.json",
            "pytorch_model-00001-of-00001.bin",
            "pytorch_model.bin.index.json",
            "vocab.json",
            "training_args.bin",
        ];
        assert_eq!(
            chosen(&paths, "o/n", false).unwrap(),
            ["config.json", "pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json", "vocab.json"]
        );
        assert_eq!(chosen(&["config.json", "consolidated.safetensors"], "o/n", false).unwrap().len(), 2);
    }

    #[test]
    fn of_a_gguf_repository_the_named_file_alone() {
        let paths = ["config.json", "a-Q4.gguf", "b/c-00001-of-00002.gguf", "b/c-00002-of-00002.gguf"];
        assert_eq!(chosen(&paths, "o/n:a-Q4.gguf", false).unwrap(), ["a-Q4.gguf"]);
        assert_eq!(chosen(&paths, "o/n:b/c-00001-of-00002.gguf", false).unwrap().len(), 2);
        let several = chosen(&paths, "o/n", false).unwrap_err();
        assert!(several.advice().get(Lang::En).contains("--model o/n:a-Q4.gguf"));
        assert!(matches!(chosen(&paths, "o/n:z.gguf", false), Err(DownloadError::NotFound { .. })));
        assert!(chosen(&["README.md"], "o/n", false).unwrap_err().cause().get(Lang::En).contains("no GGUF"));
    }
}
