//! Rules of `verify answers`.

super::rules! {
    TEST_FAILED = "answers/test-failed" Error {
        message: "{message}" / "{message}";
        help: "" / "";
        why: "The reference answer does not pass the notebook's own test."
           / "参考答案没有通过笔记本自带的测试。";
    }
}
