//! Rules of `verify links`.

super::rules! {
    MISSING_FILE = "links/missing-file" Error {
        message: "{target} does not exist" / "{target} 不存在";
        help: "" / "";
        why: "A reader who follows the link gets an error page."
           / "读者点开链接只会看到错误页面。";
    }
}
