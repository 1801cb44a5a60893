// What the server says in English, for people who read Chinese: by what never changes where there is such a thing (the
// type of a problem, the cause of an explanation), and for the texts that people meet often by how they are put. What is
// not here stays as it is.

/** By the type of a problem. */
export const problems: Record<string, [title: string, advice: string]> = {
  unauthenticated: ['尚未登录', '令牌无效、已过期或已吊销，请重新登录。'],
  forbidden: ['没有权限', '你的角色不允许此操作。'],
  'too-many-requests': ['请求过多', '请稍候再试。'],
  'provider-away': ['身份提供方没有正常响应', '请稍后再试。'],
  malformed: ['请求不是有效的 JSON', '请检查格式。'],
  'forbidden-host': ['不提供此主机名的服务', '请用节点自己的地址访问。'],
  'cross-origin': ['其他网站不能在此修改', '请直接打开本页面操作。'],
  'not-found': ['不存在', '它可能已被删除，或者属于你无权查看的应用。'],
  'method-not-allowed': ['不支持此方法', ''],
  exists: ['名称已被占用', '请换一个名称，或修改已有的那个。'],
  changed: ['期间已被他人修改', '没有改动任何内容。请重新读取后再决定。'],
  unreadable: ['保存的定义无法读取', '请整体替换它的定义。'],
  stale: ['期间已被他人修改', '请重新读取后再决定。'],
  'key-reused': ['Idempotency-Key 已用于其他请求', '请换一个新的键。'],
  'in-use': ['仍被引用', '请先修改引用它的对象。'],
  'no-secret-key': ['此节点没有密钥的加密钥', '请给节点配置加密钥，或到其他节点操作。'],
  'has-ended': ['运行已经结束', ''],
  'too-large': ['内容太大', '请减小内容。'],
  'unsupported-media-type': ['内容类型不受支持', ''],
  invalid: ['有内容不正确', '请按各字段的提示修改。'],
  internal: ['服务器内部出错', '节点日志中按请求编号可查到更多信息。'],
  'no-session': ['此节点暂时不能修改', '它正在启动、排空或与数据库失去联系。请稍后再试，或换一个节点。'],
  'unknown-outcome': ['修改是否生效尚不清楚', '数据库没有给出结果，请查看当前状态后再决定。'],
  'no-stream': ['此节点不再打开新的事件流', '页面会定时刷新。'],
  unavailable: ['数据库没有响应', '没有改动任何内容，请稍后再试。'],
};

/** By the cause of an explanation. */
export const causes: Record<string, string> = {
  succeeded: '它按时运行，并且成功了。', failed: '它运行了，但失败了。', timed_out: '它运行了，因超时被停止。', killed: '它运行了，但被终止。', lost: '它所在的节点消失了，是否完成无人知道。', skipped: '这个到期时间被跳过。', missed: '这个到期时间被错过：没有节点能及时启动它。', superseded: '它被更新的一次取代。',
  not_due: '按定义，这不是到期时间。', gap: '夏令时开始，时钟跳过了这个时刻；任务在跳过之后立即触发。', repeat: '夏令时结束，这个时刻出现两次；任务只在第一次触发。', calendar: '本来到期，但日历排除了它。', shifted: '任务有自己固定的抖动，因此稍后才到期。', before_start: '它早于定义的开始时间。', after_end: '它晚于定义的结束时间。', max_fires: '到那时任务已达到最大次数。',
  ahead: '它还没有到，届时会启动。', paused: '任务、应用或集群当时已暂停。', overlap: '上一次运行还没有结束，按重叠策略没有启动。', group: '它的分组没有空闲槽位。', handler_disabled: '它的 Go 函数已停用。', deadline: '等待太久，超过了启动期限。', cluster_down: '当时没有节点在工作。', waiting: '已到期，正在等待。', no_node: '没有可以运行它的节点。', executing: '已启动，正在执行。', definition_is_younger: '任务是之后才创建的，或当时的定义不同。', deleted: '任务在此之前已被删除。', error: '任务无法排期。', no_record: '没有相关记录：旧记录会被清理，或任务当时正被修改。',
};

/** By how they are put. $1 and so on are what stands in the brackets. */
export const patterns: [RegExp, string][] = [
  [/^is empty; give 1 to (\d+) characters$/, '不能为空，请填写 1 到 $1 个字符'],
  [/^is missing.*$/, '必须填写'],
  [/^is (\d+) characters long, at most (\d+) are taken$/, '有 $1 个字符，最多 $2 个'],
  [/^is (\d+) bytes long, at most (\d+) are taken$/, '有 $1 字节，最多 $2 字节'],
  [/^is not valid UTF-8$/, '不是有效的 UTF-8'],
  [/^(".*") contains a control character$/, '$1 含有控制字符'],
  [/^(".*") begins or ends with white space$/, '$1 的首尾有空白'],
  [/^(\S+) is not between (\S+)(?: \([^)]*\))? and (\S+?)(?:;.*)?$/, '$1 不在 $2 与 $3 之间'],
  [/^the year (\d+) is not between (\d+) and (\d+)$/, '年份 $1 不在 $2 与 $3 之间'],
  [/^(".*"|\S+) is not one of (.*?)(?:;.*)?$/, '$1 不是以下之一：$2'],
  [/^is not known; did you mean (.*)\?$/, '未知字段；是否想写 $1？'],
  [/^is not known.*$/, '未知字段'],
  [/^(\S+) is before start, (\S+)$/, '$1 早于开始时间 $2'],
  [/^(\S+) is negative.*$/, '$1 不能为负'],
  [/^(\d+) of schedule, schedules, every, at are given.*$/, '“何时”须且只须填写一种：schedule、schedules、every 或 at（现有 $1 种）'],
  [/^(\d+) of command, http, handler are given.*$/, '“做什么”须且只须填写一种：command、http 或 handler（现有 $1 种）'],
  [/^does not go with at, which is one due time$/, '不能与 at 一起使用：at 只有一个到期时间'],
  [/^time zone (".*"): unknown; did you mean (.*)\?$/, '未知时区 $1；是否想写 $2？'],
  [/^time zone (".*"): .*$/, '时区 $1 不可用；请填写 IANA 名称，例如 Asia/Shanghai'],
  [/^every (\S+): shorter than (\S+)$/, '间隔 $1 短于 $2'],
  [/want a duration/, '请填写时长，例如 90s、15m、1h30m'],
  [/want a time such as|is not a time such as/, '请填写时刻，例如 2027-01-31T03:00:00Z'],
  [/^want .*$/, '格式不正确'],
  [/^\[?(?:cron|expression)\b.*$/, 'cron 表达式不正确'],
  // Reasons of runs.
  [/^exit code (\d+)$/, '退出码 $1'],
  [/^(?:job|the job|its app|the cluster) ?(?:was|is)? ?paused.*$/, '已暂停'],
  [/^paused\b.*$/, '已暂停'],
  [/^overlap: the run due (\S+) is still executing$/, '重叠：到期时间为 $1 的运行仍在执行'],
  [/^overlap\b.*$/, '重叠：上一次运行还没有结束'],
  [/^group (\S+) has no free slot.*$/, '分组 $1 没有空闲槽位'],
  [/^handler (\S+) is disabled.*$/, 'Go 函数 $1 已停用'],
  [/^killed by (.*) over HTTP$/, '由 $1 终止'],
  [/^killed by (.*)$/, '由 $1 终止'],
  [/^lease lost$/, '节点失去租约'],
  [/^fenced$/, '节点失去租约，运行被终止'],
  [/^timeout\b.*$/, '超时'],
  [/^(?:no node|nobody) .*$/, '没有节点能及时启动它'],
  [/^a background process still holds the output$/, '后台进程仍占用输出'],
  [/^background processes were still running and were ended$/, '仍有后台进程在运行，已结束它们'],
  [/^job was deleted$/, '任务已被删除'],
];
