//! Rules that any stage can emit.

super::rules! {
    INTERRUPTED = "run/interrupted" Error {
        message: "interrupted by {signal}" / "被 {signal} 中断";
        help: "run the command again; nothing of this stage counts" / "请重新运行；本阶段的结果不作数";
        why: "A run that was cut short has judged only a part of what it was asked to judge, so it cannot pass."
           / "被中断的运行只检查了一部分，因此不能算通过。";
    }
    EXCLUDED = "run/excluded" Note {
        message: "{path} is excluded by the settings and was not checked" / "{path} 被设置排除，未检查";
        help: "remove it from `course.exclude` to have it checked" / "如需检查，请从 `course.exclude` 中去掉它";
        why: "Excludes also hold for paths named on the command line, because hooks pass every changed file; the note keeps that from being silent."
           / "钩子会把所有改动过的文件都传进来，所以排除规则对命令行上的路径同样有效；这条提示避免它悄悄发生。";
    }
    UNREADABLE = "run/unreadable" Error {
        message: "{path} cannot be read: {cause}" / "无法读取 {path}：{cause}";
        help: "check that the file exists and that you may read it" / "请确认文件存在且有读取权限";
        why: "A file that cannot be read was not judged, and what was not judged cannot pass."
           / "读不了的文件没有被检查，没有检查过就不能算通过。";
    }
}
