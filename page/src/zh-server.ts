// What the server says in English, for people who read Chinese: by what never changes where there is such a thing (the
// type of a problem, the cause of an explanation), and for the texts that people meet often by how they are put. What is
// not here stays as it is.

export { checks, findings } from './zh-doctor';
export { sentences } from './zh-problems';

/** By the type of a problem. */
export const problems: Record<string, [title: string, advice: string]> = {
  unauthenticated: ['尚未登录', '令牌无效、已过期或已吊销，请重新登录。'],
  forbidden: ['没有权限', '你的角色不允许此操作。'],
  'app-limit': ['应用已达到其上限', '请等待、减少任务，或请集群管理员提高上限。'],
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
  busy: ['此节点繁忙', '请稍后再试，或换一个节点。'],
  unavailable: ['数据库没有响应', '没有改动任何内容，请稍后再试。'],
};

/** By the cause of an explanation. */
export const causes: Record<string, string> = {
  succeeded: '它运行了，并且成功了。', failed: '它运行了，但失败了。', timed_out: '它运行了，因超时被停止。', killed: '它被终止了。', lost: '它所在的节点消失了，是否完成无人知道。', skipped: '这个计划时间被跳过。', missed: '这个计划时间被错过：没有节点能及时启动它。', superseded: '它被更新的一次取代。',
  not_due: '按定义，这不是计划时间。', gap: '夏令时开始，时钟跳过了这个时刻；任务在跳过之后立即触发。', repeat: '夏令时结束，这个时刻出现两次；任务只在第一次触发。', calendar: '本来到期，但日历排除了它。', weeks: '它所在的周不在任务保留的周之内。', shifted: '任务有自己固定的抖动，因此稍后才到期。', before_start: '它早于定义的开始时间。', after_end: '它晚于定义的结束时间。', max_fires: '到那时任务已达到最大次数。',
  ahead: '它还没有到，届时会启动。', paused: '任务、应用或集群当时已暂停。', overlap: '上一次运行还没有结束，按重叠策略没有启动。', group: '它的分组没有空闲槽位。', nothing_to_do: '它运行了，但无事可做。', handler_disabled: '它的 Go 函数已停用。', deadline: '等待太久，超过了启动期限。', cluster_down: '当时没有节点在工作。', waiting: '已到期，正在等待。', no_node: '没有可以运行它的节点。', app_limit: '应用已达到其上限之一。', executing: '已启动，正在执行。', definition_is_younger: '任务是之后才创建的，或当时的定义不同。', deleted: '任务在此之前已被删除。', error: '任务无法排期。', no_record: '没有相关记录：旧记录会被清理，或任务当时正被修改。',
};

/** A pattern that no text has: its words are for a code whose text fits no other pattern. */
const none = /(?!)/;
type Patterns = [RegExp, string][]; // how it is put; $1 and so on are what stands in the brackets, $~1 is that in Chinese

// Reasons of runs. The keys are the codes of job/reason.go. If no pattern of a code fits the text, its first words without a value stand for
// it. A text may have several sentences with semicolons between them. page/reasons_test.go takes examples from page/testdata/reasons.txt.
export const reasons: Record<string, Patterns> = {
  exit_code: [[/^exit status (\d+)$/, '退出码 $1'], [none, '退出码表示失败']],
  nothing_to_do: [[/^exit status (\d+): nothing to do$/, '退出码 $1：无事可做'], [none, '无事可做']],
  exit_code_unknown: [[/^another part of the program collected the exit status$/, '退出码被程序的其他部分取走'], [none, '无法得知退出码']],
  signal: [[/^killed by (SIG\w+)$/, '被信号 $1 终止'], [none, '被信号终止']],
  memory_limit: [[/^it used more memory than limits\.memory \((\S+)\)$/, '内存超过 limits.memory（$1），已终止'], [none, '内存超过 limits.memory，已终止']],
  machine_memory: [[/^the machine ran out of memory$/, '机器内存耗尽，已终止']],
  cpu_limit: [[/^it used more CPU time than limits\.cpu_seconds \((\d+)\)$/, '处理器时间超过 limits.cpu_seconds（$1）'], [none, '处理器时间超过 limits.cpu_seconds']],
  file_size_limit: [[/^it tried to write a file larger than limits\.file_size \((\S+)\)$/, '写入的文件超过 limits.file_size（$1）'], [none, '写入的文件超过 limits.file_size']],
  pids_limit: [[/^limits\.pids \((\d+)\) refused it a new process (\d+) times$/, '有 $2 次因 limits.pids（$1）不能创建进程'], [none, '因 limits.pids 不能创建进程']],
  processes_ended: [[/^it left background processes, and the node stopped them$/, '仍有后台进程在运行，已结束它们']],
  processes_killed: [[/^it left processes outside its process group, and the node killed them$/, '有脱离进程组的进程仍在运行，已终止它们']],
  output_cut: [[/^most of its output was not kept, because (.+)$/, '大部分输出未能保留：$1'], [none, '大部分输出未能保留']],
  output_held: [[/^a background process still has the output open$/, '后台进程仍占用输出']],

  http_status: [[/^HTTP (\d+)( [A-Za-z' -]+)?, expected (.+)$/, 'HTTP $1$2，应为 $3'], [none, 'HTTP 状态不符合预期']],
  no_connection: [[/^cannot connect to (\S+): (.+)$/, '无法连接 $1：$2'], [none, '无法连接']],
  address_refused: [[none, '此节点不允许连接该地址']],
  no_answer: [[/^the request was sent, but there was no response: (.+)$/, '请求已发出，但没有响应：$1'], [none, '请求已发出，但没有响应']],
  answer_broken: [[/^the response \((HTTP [^)]+)\) broke off after (\d+) bytes: (.+)$/, '响应（$1）在 $2 字节后中断：$3'], [none, '响应中断']],
  redirect_refused: [[none, '重定向到不予跟随的地址']],

  handler_error: [[none, 'Go 函数返回了错误']],
  handler_panic: [[none, 'Go 函数 panic，或没有正常返回']],

  timeout: [[/^the (?:command|handler|request) (?:ran|took) longer than its timeout of (\S+)$/, '运行超过 $1'], [none, '运行超时'], [/^the request was sent, but there was no response yet$/, '请求已发出，尚无响应'], [/^the connection was not established yet, so nothing was sent$/, '尚未建立连接，没有发出请求'], [/^the response \((HTTP [^)]+)\) was still arriving$/, '响应（$1）尚未接收完']],
  killed_by_user: [[/^killed by a user$/, '被用户终止']],
  replaced: [[/^a later run replaced it$/, '被之后的计划时间取代'], [/^the run due (\S+) replaced it$/, '被计划时间为 $1 的运行取代']],
  node_stopped: [[/^the node was stopped$/, '节点已停止'], [/^the node killed all its runs$/, '随节点上的其他运行一起终止']],
  node_lost: [[/^its node stopped responding while it was running$/, '运行时它所在的节点失去了响应']],
  session_lost: [[none, '节点失去了会话'], [/^the node's lease expired: it could not renew it in MySQL in time$/, '节点未能及时在 MySQL 中续租，租约已过期'], [/^another node declared this node dead$/, '其他节点已判定此节点失联']],
  guard_kill: [[/^its node hung or lost MySQL for too long, and the guard killed the run$/, '节点停顿或失去联系太久，被守护进程终止']],
  executor_panic: [[/^the node panicked while executing the run; see the node's log$/, '执行器出错，详见节点日志']],

  start_failed: [[none, '系统未能启动命令']],
  user_refused: [[none, '此节点不能以该用户运行命令']],
  directory_unavailable: [[none, '目录不存在或没有响应']],
  limit_unavailable: [[none, '此节点无法执行任务的某项限制']],
  secret_unreadable: [[none, '密钥不存在，或无法读取']],
  param_invalid: [[none, '提出请求后定义已更改，运行所得的参数不再适用']],
  request_invalid: [[none, '按定义无法生成可发送的请求']],
  handler_missing: [[/^no handler (".*") is registered on this node$/, '此节点没有注册 Go 函数 $1'], [none, '此节点没有注册该 Go 函数']],
  executor_missing: [[none, '此节点不运行这类任务']],

  previous_run_executing: [[/^(?:overlap: )?the run due (\S+) (?:is still executing|was still running)$/, '重叠：计划时间为 $1 的运行仍在执行'], [none, '重叠：上一次运行仍在执行']],
  previous_run_waiting: [[/^(?:overlap: )?the run due (\S+) (?:is|was) still waiting to start$/, '重叠：计划时间为 $1 的运行仍在等待启动'], [none, '重叠：上一次运行仍在等待启动']],
  backfill_run_ahead: [[/^overlap: another due time is already waiting for a backfill run to end$/, '重叠：已有另一个计划时间在等待补跑的运行结束']],
  queue_full: [[/^overlap: the queue is full, (\d+) due times? (?:is|are) already waiting$/, '重叠：队列已满，已有 $1 个计划时间在等待'], [none, '重叠：队列已满']],
  group_full: [[/^group (.+) admits no start now \(rate (\S+)\), (\d+) due times? (?:is|are) already waiting$/, '分组 $1 的速率 $2 已用完，已有 $3 个计划时间在等待'], [/^group (.+) has no free slot, (\d+) due times? (?:is|are) already waiting$/, '分组 $1 没有空闲槽位，已有 $2 个计划时间在等待'], [none, '分组没有空闲槽位']],
  group_missing: [[/^group (.+) does not exist$/, '分组 $1 不存在'], [none, '分组不存在']],
  app_limit_runs_per_minute: [[/^app (.+) is at its limit of (\d+) runs? a minute$/, '应用 $1 已达上限：每分钟最多启动 $2 次'], [none, '应用已达上限：每分钟启动次数']],
  app_limit_waiting: [[/^app (.+) is at its limit of (\d+) waiting runs?$/, '应用 $1 已达上限：最多 $2 个等待的运行'], [none, '应用已达上限：等待的运行']],
  job_paused: [[/^the job is paused$/, '任务已暂停'], [/^the job was paused until (\S+)$/, '任务暂停至 $1'], [/^paused since (\S+)$/, '自 $1 起暂停']],
  app_paused: [[/^app (\S+) is paused( by [^:]+?)?(?:: (.+))?$/s, '应用 $1 已暂停$~2$~3'], [/^the job was paused until (\S+)$/, '任务随应用暂停至 $1'], [none, '应用已暂停']],
  cluster_paused: [[/^the cluster is paused( by [^:]+?)?(?:: (.+))?$/s, '集群已暂停$~1$~2'], [/^the job was paused until (\S+)$/, '任务随集群暂停至 $1'], [none, '集群已暂停']],
  handler_disabled: [[/^handler (\S+) is disabled( by [^:]+?)?(?:: (.+))?$/s, 'Go 函数 $1 已停用$~2$~3'], [none, 'Go 函数已停用']],
  database_restored: [[/^due before the database was restored at (\S+): it may have run already; see docs\/backup\.md$/, '在数据库于 $1 恢复之前到期：可能已经运行过；见 docs/backup.md'], [none, '在数据库恢复之前到期：可能已经运行过']],
  backfill_cancelled: [[/^the backfill was cancelled$/, '补跑已取消']],
  definition_invalid: [[none, '任务的定义无法使用']],
  misfire: [[/^no node could start it within (\S+) of its due time; misfire policy (\S+)$/, '到期后 $1 内没有节点能启动它；误点策略 $2'], [/^no node could start it within (\S+) of its due time$/, '到期后 $1 内没有节点能启动它'], [none, '没有节点能及时启动它']],
  start_deadline: [[/^no node could start it before its start deadline, (\S+) after it was due$/, '未能在启动期限（到期后 $1）之前启动'], [none, '未能在启动期限之前启动']],
  wait_deadline: [[/^it was still waiting when its start deadline passed$/, '启动期限已到，它仍在等待']],
  no_node: [[none, '没有可以运行它的节点'], [/^no node can take it: all are cordoned, draining, or run handlers only$/, '没有节点可以运行它：都已隔离、正在排空，或只运行 Go 函数'], [/^no node matches (.+)$/, '没有符合 $1 的节点']],
  not_followed: [[/^the job does not follow (.+) any more$/, '任务已不再跟随 $1'], [none, '任务已不再跟随那个任务']],
  job_deleted: [[/^the job was deleted$/, '任务已被删除']],
  schedule_changed: [[/^the schedule was changed before the due time was claimed$/, '在领取之前，任务的排期已修改']],
};

/** For what a due time waits, by `for`. */
export const waits: Record<string, Patterns> = {
  job: [[/^earlier runs of the job have not ended$/, '任务之前的运行还没有结束']],
  group: [[/^rate of group (.+) is (\S+), next start at (\S+)$/, '分组 $1 的速率为 $2，下次可在 $3 启动'], [/^group (.+) has no free slot$/, '分组 $1 没有空闲槽位'], [none, '分组没有空闲槽位']],
  node: reasons.no_node,
  pause: [[none, '暂停尚未结束']],
  slot: [[none, '节点没有空闲槽位']],
};

// What alerts say. What is not here is a reason of a run.
export const alerts: Patterns = [
  [/^(.+?): (\d+) due times from (\S+) on (.+)$/s, '$1：自 $3 起的 $2 个计划时间，$~4'],
  [/^(failed|timed out|was killed|was lost|was missed|were missed)( after \d+ attempts)?: (.+)$/s, '$~1$~2：$~3'],
  [/^(\S+\/.+?) (failed|timed out|was killed|was lost|was missed)( after \d+ attempts)?: (.+)$/s, '$1 $~2$~3：$~4'],
  [/^(\S+\/.+?) (failed|timed out|was killed|was lost|was missed|succeeded|started)( after \d+ attempts)?$/, '$1 $~2$~3'],
  [/^(\S+\/.+?) (started \S+ late|ended \S+ after its due time .*|has not started and is .*|has not ended .*)$/, '$1：$~2'],
  [/^(failed|timed out|was killed|was lost|was missed|were missed)( after \d+ attempts)$/, '$~1$~2'],
  [/^ after (\d+) attempts$/, '（第 $1 次尝试后）'],
  [/^failed$/, '失败'], [/^succeeded$/, '成功'], [/^started$/, '已启动'], [/^timed out$/, '超时'], [/^was killed$/, '被终止'], [/^was lost$/, '丢失'], [/^(?:was|were) missed$/, '错过'],
  [/^started (\S+) late$/, '启动延迟 $1'],
  [/^ended (\S+) after its due time \((\S+)\)$/, '$1 后才结束（$2）'],
  [/^has not started and is (\S+) late$/, '尚未启动，已迟 $1'],
  [/^has not ended (\S+) after its due time$/, '$1 后仍未结束'],
  [/^(\d+) failures within (\S+), the latest: (.+)$/s, '$2 内失败 $1 次，最近一次：$~3'],
  [/^(\d+) due times are overdue by more than (\S+)$/, '有 $1 个计划时间逾期超过 $2'],
  [/^the node (\S+) stopped responding at (\S+) and has not returned$/, '节点 $1 于 $2 失去响应，尚未恢复'],
  [/^the clock of the node (\S+) differs from MySQL's by (\S+) \(.*$/, '节点 $1 的时钟与 MySQL 相差 $2'],
  [/^(\d+) live nodes are named (\S+): (.+)$/s, '有 $1 个在线节点同名 $2：$3'],
  [/^the node (\S+) cannot apply the folder (\S+): (.+)$/s, '节点 $1 无法应用文件夹 $2：$3'],
  [/^the last backup was made at (\S+), and the next one was expected within (\S+)$/, '上次备份于 $1，下一次备份应在 $2 内完成'],
  [/^the token (.+) expires at (\S+)$/, '令牌 $1 将于 $2 过期'],
  [/^the token (.+) expired at (\S+)$/, '令牌 $1 已于 $2 过期'],
  [/^the TLS certificate of the node (\S+) expires at (\S+)$/, '节点 $1 的 TLS 证书将于 $2 过期'],
  [/^the TLS certificate of the node (\S+) expired at (\S+)$/, '节点 $1 的 TLS 证书已于 $2 过期'],
  [/^the node (\S+) has not reached the OIDC issuer since (\S+): (.+)$/s, '节点 $1 自 $2 起无法连接 OIDC 身份提供方：$3'],
  [/^(.+) started \(attempt (\d+)\)$/, '$1 已启动（第 $2 次尝试）'],
  [/^(.+) has not run for (\S+)$/, '$1 已有 $2 没有运行'],
];

// What messages of alerts and pings, and the archive command, met with.
export const others: Patterns = [
  [/^the job no longer has a (?:ping|URL for this ping)$/, '任务已没有这个 ping'],
  [/^a later due time replaced it$/, '被之后的计划时间取代'],
  [/^it was tried for (\S+); the last error: (.+)$/s, '已重试 $1；最后的错误：$~2'],
  [/^it waited longer than (\S+)$/, '等待超过 $1'],
  [/^it is outdated: it is older than (\S+)$/, '已过时：早于 $1'],
  [/^the channel was deleted$/, '渠道已删除'],
  [/^the channel is disabled$/, '渠道已停用'],
  [/^the channel cannot be read: (.+)$/s, '渠道无法读取：$1'],
  [/^too many messages are waiting for the channel$/, '渠道等待发送的消息过多'],
  [/^the node stopped while sending it: (.+)$/s, '节点在发送时停止：$~1'],
  [/^no response in time$/, '没有及时响应'],
  [/^the response broke off: (.+)$/s, '响应中断：$1'],
  [/^the url cannot be parsed$/, 'URL 无法解析'],
  [/^(\d{3}[^:]*): redirects are not followed; set the final URL$/, '$1：不跟随重定向，请填写最终的 URL'],
  [/^the server answered (?:errcode|code) (-?\d+): (.*)$/s, '服务器返回代码 $1：$2'],
  [/^(\S+) accepted it for (.+)$/s, '$1 已接收，收件人：$2'],
  [/^dial tcp (\S+): connect: connection refused$/, '无法连接 $1：连接被拒绝'],
  [/^dial tcp: lookup (\S+?)(?: on \S+)?: no such host$/, '找不到主机 $1'],

  [/^job (\d+): (.+)$/s, '任务 $1：$~2'],
  [/^cannot remove records of job (\d+): (.+)$/s, '无法删除任务 $1 的记录：$2'],
  [/^the command took longer than ([^\s:]+) and was killed$/, '命令运行超过 $1，已终止'], [/^the command took longer than ([^\s:]+) and was killed: (.+)$/s, '命令运行超过 $1，已终止：$2'],
  [/^the command exited with status 0 without reading the last (\d+) bytes$/, '命令以退出码 0 结束，但没有读取最后 $1 字节'], [/^the command exited with status 0 without reading the last (\d+) bytes: (.+)$/s, '命令以退出码 0 结束，但没有读取最后 $1 字节：$2'],
  [/^exit status (\d+)$/, '退出码 $1'], [/^exit status (\d+): (.+)$/s, '退出码 $1：$2'],
  [/^signal: (\w+)$/, '被信号 $1 终止'], [/^signal: (\w+): (.+)$/s, '被信号 $1 终止：$2'],
];
