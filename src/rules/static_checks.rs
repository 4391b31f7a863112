//! Rules of `verify static`.

super::rules! {
    SYNTAX = "static/syntax" Error {
        message: "{message}" / "{message}";
        help: "" / "";
        why: "A file or cell that does not compile cannot run for anybody, whatever is written below it."
           / "无法编译的文件或单元格对任何人都运行不了，后面写得再好也没有用。";
    }
}
