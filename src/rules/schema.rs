//! Rules of `verify schema`: `schema/…` about the contract, `json/…` about the document.

super::rules! {
    FILE_MISSING = "schema/file-missing" Error {
        message: "{path} does not exist" / "{path} 不存在";
        help: "run the measurement that writes it, or correct the name" / "请运行会写出该文件的测量，或更正文件名";
        why: "A result that was asked for and is not there was not measured."
           / "点名要求的结果不存在，就等于没有测量。";
    }
}
