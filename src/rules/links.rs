//! Rules of `verify links`.

super::rules! {
    MISSING_FILE = "links/missing-file" Error {
        message: "`{target}` does not exist" / "`{target}` 不存在";
        help: "correct the path, or remove the link" / "请更正路径，或删除该链接";
        why: "A reader who follows the link gets an error page. Paths are compared with the files of the repository, as GitHub does, not with what happens to lie on one disk."
           / "读者点开链接只会看到错误页面。路径与仓库中的文件逐字节比较（GitHub 也是这样），而不是看本机磁盘上碰巧有没有。";
    }
    MISSING_ANCHOR = "links/missing-anchor" Error {
        message: "`{target}`: the page has no such heading or id" / "`{target}`：页面中没有对应的标题或 id";
        help: "correct the fragment behind `#`, or remove it" / "请更正 `#` 之后的锚点，或将其删除";
        why: "The browser shows the top of the page and says nothing, so nobody notices. Ids are made by the rule of the renderer the reader is on: GitHub, Jupyter or VitePress."
           / "浏览器会停在页面顶部且不给任何提示，问题因此很难被发现。锚点按读者所在渲染器（GitHub、Jupyter 或 VitePress）的规则生成。";
    }
    CASE_MISMATCH = "links/case-mismatch" Error {
        message: "`{target}` is written `{actual}` in the repository" / "`{target}` 在仓库中的写法是 `{actual}`";
        help: "write the name as it is" / "请与实际文件名保持一致";
        why: "Windows and macOS take both spellings for one name; Git, GitHub and Linux do not, so the link works for its author only."
           / "Windows 和 macOS 不区分大小写，Git、GitHub 和 Linux 区分，所以这个链接只在作者的机器上可用。";
    }
    OUTSIDE_ROOT = "links/outside-root" Error {
        message: "`{target}` leads out of the repository" / "`{target}` 指向仓库之外";
        help: "take away one `../`, or link to the full address" / "请去掉多余的 `../`，或改用完整网址";
        why: "What lies beside the repository on one disk is not there for anybody else."
           / "仓库之外的文件只存在于某一台机器上，其他人无法访问。";
    }
    NOT_ON_SITE = "links/not-on-site" Error {
        message: "`{target}` exists as `{actual}`, but the site does not publish it there" / "`{target}` 对应的 `{actual}` 存在，但站点不会在该地址发布它";
        help: "link to a page of the site, put the file into `public/`, or link to it on GitHub" / "请链接到站点页面，或把文件放进 `public/`，或改为 GitHub 上的链接";
        why: "VitePress publishes the Markdown pages below its root and what lies in `public/`; any other file of the repository is a 404 on the site."
           / "VitePress 只发布根目录下的 Markdown 页面和 `public/` 中的文件，仓库里的其他文件在站点上是 404。";
    }
    LOCAL_PATH = "links/local-path" Error {
        message: "`{target}` is a path of one machine" / "`{target}` 是某台机器上的本地路径";
        help: "link to the file relative to this one, or to its address on the web" / "请改为相对于当前文件的路径或网址";
        why: "`file:` addresses and drive letters work on the author's machine only."
           / "`file:` 地址和盘符只在作者自己的机器上有效。";
    }
    BACKSLASH = "links/backslash" Error {
        message: "`{target}` uses backslashes" / "`{target}` 使用了反斜杠";
        help: "separate folders with `/`" / "请用 `/` 分隔目录";
        why: "In a web address a backslash is an ordinary character of a name; only Windows takes it for a separator."
           / "网址中的反斜杠只是普通字符，只有 Windows 把它当作分隔符。";
    }
    MISSING_ATTACHMENT = "links/missing-attachment" Error {
        message: "`{target}`: this cell has no such attachment" / "`{target}`：该单元格没有这个附件";
        help: "paste the picture into this cell again, or link to a file" / "请在该单元格中重新粘贴图片，或改为链接到文件";
        why: "Attachments belong to one cell; splitting or copying a cell, or converting the notebook, loses them."
           / "附件只属于一个单元格；拆分、复制单元格或转换 Notebook 都会丢失附件。";
    }
    UNTRACKED_TARGET = "links/untracked-target" Warning {
        message: "`{target}` is on this disk, but git ignores it or does not know it" / "`{target}` 在本机磁盘上存在，但被 git 忽略或尚未纳入版本管理";
        help: "add `{actual}` with `git add -f`, or link to something that is published" / "请用 `git add -f` 添加 `{actual}`，或改为链接到会发布的文件";
        why: "The link works here and is broken for everybody who clones the repository."
           / "链接在本机可用，但其他人克隆仓库后就会失效。";
    }
    EMPTY_TARGET = "links/empty-target" Warning {
        message: "the link has no target" / "链接没有目标";
        help: "name a target, or write plain text" / "请补上目标，或改为普通文本";
        why: "A link without a target leads to the page it stands on; mostly something was forgotten."
           / "没有目标的链接会回到当前页面，通常是忘了填写。";
    }
    UNREADABLE = "links/unreadable" Warning {
        message: "{path} was not checked: {cause}" / "未检查 {path}：{cause}";
        help: "{advice}" / "{advice}";
        why: "Links in a file that cannot be read were not checked; the rest of the run goes on."
           / "读不了的文件中的链接没有被检查，其余文件照常检查。";
    }
    NOT_A_SOURCE = "links/not-a-source" Note {
        message: "{path} was not checked: it is neither Markdown nor a notebook" / "未检查 {path}：它既不是 Markdown 也不是 Notebook";
        help: "" / "";
        why: "Hooks pass every changed file. One that holds no Markdown links is named, so that nobody takes it for checked; alone it is a fault of usage."
           / "钩子会传入所有改动过的文件。不含 Markdown 链接的文件会单独说明，避免被误认为已检查；只传入这类文件时按用法错误处理。";
    }
    ANCHOR_CASE = "links/anchor-case" Note {
        message: "`{target}` matches the heading only in lower case" / "`{target}` 只有转为小写才与标题匹配";
        help: "write `{actual}`" / "请写成 `{actual}`";
        why: "GitHub tries the lower-case form of a fragment too; other renderers do not."
           / "GitHub 会再按小写匹配一次锚点，其他渲染器不会。";
    }
    PLACEHOLDER = "links/placeholder" Note {
        message: "`{target}` is a placeholder" / "`{target}` 是占位符";
        help: "" / "";
        why: "Three dots and template expressions stand for a target that is filled in later."
           / "三个点和模板表达式代表以后再填写的目标。";
    }
    UNUSED_IGNORE = "links/unused-ignore" Warning {
        message: "this entry accepts no finding: {what}" / "该条目没有命中任何问题：{what}";
        help: "remove it" / "请将其删除";
        why: "An exception that is no longer needed would hide the next fault of its kind."
           / "不再需要的例外会掩盖下一个同类问题。";
    }
    BASELINE = "links/baseline" Note {
        message: "{what}" / "{what}";
        help: "" / "";
        why: "A baseline accepts the findings of one day so that new ones stand out; what it accepts, and what it no longer needs to accept, is said."
           / "基线会接受某一时刻已有的问题，让新问题更显眼；接受了什么、哪些已不再需要，都会说明。";
    }
    MIRROR_MISSING = "links/mirror-missing" Error {
        message: "{path} has no page {page} in the docs tree" / "{path} 在文档目录中没有对应页面 {page}";
        help: "convert or copy it, then run the check again" / "请先转换或复制，再重新检查";
        why: "The docs tree mirrors the chapters; a page that was not copied is missing on the site."
           / "文档目录是各章节的镜像，没有同步的页面在站点上就不存在。";
    }
    MIRROR_DIFFERS = "links/mirror-differs" Note {
        message: "`{target}` is broken here and works in {copy}" / "`{target}` 在此处失效，但在 {copy} 中有效";
        help: "write a link that is right in both, such as the full address of the site" / "请使用两处都有效的写法，例如站点的完整网址";
        why: "One text is read in two places with different rules; a link can be right in one and wrong in the other."
           / "同一份文本在两处按不同规则渲染，链接可能在一处有效、在另一处失效。";
    }
    COMMAND_FAILED = "links/command-failed" Error {
        message: "`{command}` failed: {cause}" / "`{command}` 执行失败：{cause}";
        help: "run it by itself to see why; links were not checked" / "请单独运行该命令查看原因；链接未检查";
        why: "The scan judges what conversion and build left behind; when one of them fails, it would judge old files."
           / "链接检查针对转换和构建后的产物；前一步失败时检查的只会是旧文件。";
    }
    DEAD_URL = "links/dead-url" Error {
        message: "`{target}` answers {cause}" / "`{target}` 返回 {cause}";
        help: "correct the address, or remove the link" / "请更正网址，或删除该链接";
        why: "The server says that there is no such page."
           / "服务器表示该页面不存在。";
    }
    UNCHECKED_URL = "links/unchecked-url" Warning {
        message: "`{target}` could not be checked: {cause}" / "无法检查 `{target}`：{cause}";
        help: "open it in a browser; if it is right, accept it in `[[links.ignore]]`" / "请在浏览器中确认；如果有效，可在 `[[links.ignore]]` 中加入例外";
        why: "No answer, a refusal or an overloaded server says nothing about the page, so this is no error."
           / "超时、拒绝访问或服务器过载都不能说明页面失效，因此不算错误。";
    }
}
