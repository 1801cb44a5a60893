// Made from the OpenAPI document by tools/pagetypes (make page-types). Do not edit.

/** A page of a list; next is the cursor of the page after it. */
export interface Page<T> { items: T[]; next?: string }

export interface After {
  jobs: string[];
  on?: string;
  match?: string;
  within?: Duration;
}

export interface Alert {
  id: string;
  state: 'firing' | 'resolved';
  rule: string;
  event: AlertEvent;
  severity: string;
  app?: string;
  job_id?: string;
  job?: string;
  owner?: string;
  node?: string;
  run?: string;
  summary: string;
  first: string;
  last: string;
  seen: number;
  told?: string;
  silence?: string;
  resolved?: string;
  resolved_by?: string;
}

export interface AlertChannel {
  name: string;
  description?: string;
  type: 'webhook' | 'slack' | 'feishu' | 'dingtalk' | 'wecom' | 'email' | 'pagerduty' | 'heartbeat';
  disabled?: boolean;
  url?: string;
  headers?: Record<string, string>;
  sign?: string;
  body?: string;
  routing_key?: string;
  email?: AlertEmail;
  every?: Duration;
  wait?: Duration;
  rate?: number;
  timeout?: Duration;
  version: number;
  created: string;
  updated: string;
  updated_by: string;
  error?: string;
  held?: string;
  failing?: ChannelFailing;
}

export interface AlertEmail {
  server: string;
  tls?: 'starttls' | 'tls' | 'none';
  user?: string;
  password?: string;
  from: string;
  to?: string[];
  to_owner?: boolean;
}

export type AlertEvent = 'failed' | 'recovered' | 'lost' | 'late_start' | 'late_finish' | 'never_ran' | 'failures' | 'node_gone' | 'backlog' | 'clock_skew' | 'duplicate_names' | 'folder_refused' | 'expiring' | 'oidc_unreachable' | 'backup_old' | 'started' | 'succeeded';

export interface AlertFailing {
  count: number;
  within: Duration;
  per?: 'job' | 'app' | 'rule';
}

export interface AlertItem {
  what: string;
  event: AlertEvent;
  severity: string;
  alert_id?: string;
  rule: string;
  app?: string;
  job_id?: string;
  job?: string;
  owner?: string;
  node?: string;
  run?: string;
  summary: string;
  at: string;
  since: string;
  seen: number;
  due?: string;
  zone?: string;
  output?: string;
  url?: string;
  command?: string;
}

export interface AlertOverdue {
  tasks?: number;
  older_than?: Duration;
}

export interface AlertRule {
  name: string;
  description?: string;
  disabled?: boolean;
  on: AlertEvent[];
  apps?: string[];
  jobs?: string[];
  owner?: string;
  labels?: Record<string, string>;
  channels: string[];
  severity?: 'info' | 'warning' | 'error' | 'critical';
  repeat?: Duration;
  late_start?: Duration;
  late_finish?: Duration;
  never_ran?: Duration;
  failures?: AlertFailing;
  node_gone?: Duration;
  backlog?: AlertOverdue;
  clock_skew?: Duration;
  title?: string;
  text?: string;
  version: number;
  created: string;
  updated: string;
  updated_by: string;
  error?: string;
}

export interface AlertSummary {
  firing: number;
  deliveries: Record<string, number>;
  lost: number;
  template_failures: number;
}

export interface Alive {
  status: 'ok';
}

export interface App {
  name: string;
}

export interface AppLimits {
  app: string;
  jobs?: number;
  runs_per_minute?: number;
  waiting?: number;
  output?: Size;
  use?: AppUse;
}

export interface AppUse {
  jobs: number;
  runs_per_minute: number;
  waiting: number;
  output: number;
}

export interface AppliedJob {
  id?: string;
  app: string;
  name: string;
  action: Applying;
  version?: number;
  changes?: Change[];
  warnings?: Message[];
}

export interface AppliedObject {
  name: string;
  action: Applying;
  changes?: Change[];
}

export interface Apply {
  dry_run: boolean;
  changed: number;
  groups: AppliedObject[];
  calendars: AppliedObject[];
  channels: AppliedObject[];
  rules: AppliedObject[];
  retention: AppliedObject[];
  pauses: AppliedObject[];
  jobs: AppliedJob[];
}

export type Applying = 'created' | 'updated' | 'unchanged' | 'deleted';

export interface AuditChain {
  from?: AuditLink;
  to?: AuditLink;
  links: number;
  next?: number;
  faults: AuditFault[];
}

export interface AuditEntry {
  id: string;
  at: string;
  who: string;
  origin?: string;
  action: string;
  kind: string;
  job_id?: string;
  app?: string;
  name?: string;
  reason?: string;
  was?: unknown;
  became?: unknown;
}

export interface AuditFault {
  seq: number;
  line?: string;
  what: string;
}

export interface AuditLink {
  seq: number;
  at: string;
  head: string;
}

export interface Backfill {
  id: string;
  job_id: string;
  job: string;
  app: string;
  from: string;
  to: string;
  parallel: number;
  missing: boolean;
  params?: Record<string, ParamValue>;
  state: 'running' | 'done' | 'cancelled';
  health: 'running' | 'failing' | 'succeeded' | 'failed' | 'cancelled' | 'unknown';
  total: number;
  planned: number;
  left_out: number;
  ended: number;
  failed: number;
  outcomes: Record<string, number>;
  who?: string;
  created: string;
  updated: string;
}

export interface BackfillDue {
  due: string;
  state: 'succeeded' | 'failed' | 'timed_out' | 'killed' | 'lost' | 'skipped' | 'missed' | 'superseded' | 'running' | 'waiting' | 'left_out' | 'planned' | 'cancelled' | 'no_record';
  run?: Run;
}

export interface BackfillStatus {
  id: string;
  state: 'running' | 'done' | 'cancelled';
  total: number;
  planned: number;
  left_out: number;
}

export interface Backup {
  at: string;
  next_within: string;
}

export interface Began {
  target: string;
  flow: string;
}

export interface Bulk {
  dry_run: boolean;
  changed: number;
  unchanged: number;
  refused: number;
  matched?: number;
  at_least?: boolean;
  items: BulkItem[];
  next?: string;
}

export interface BulkItem {
  id: string;
  app: string;
  name: string;
  result: 'changed' | 'unchanged' | 'refused';
  why?: Message;
  version?: number;
  request?: string;
}

export interface Calendar {
  name: string;
  description?: string;
  timezone?: string;
  exclude?: CalendarDay[];
  exclude_weekdays?: string[];
  hours?: CalendarHours;
  include?: CalendarDay[];
  jobs: number;
  version: number;
  created: string;
  updated: string;
  error?: string;
}

export interface CalendarDay {
  date: string;
  end?: string;
  as?: string;
  note?: string;
}

export interface CalendarHours {
  only?: string[];
  except?: string[];
}

export interface CalendarItem {
  name: string;
  timezone?: string;
  excludes: number;
  includes: number;
  jobs: number;
  version: number;
  created: string;
  updated: string;
}

export interface Capture {
  keep?: Size;
  mark_stderr?: boolean;
}

export interface Change {
  field: string;
  was?: unknown;
  becomes?: unknown;
}

export interface ChangeNote {
  at: string;
  by?: string;
}

export interface ChannelFailing {
  tries: number;
  since: string;
  said?: string;
}

export interface ChannelTest {
  sent: boolean;
  said: string;
  took_ms: number;
}

export interface Checked {
  id: string;
  area: DoctorArea;
  about: string;
  severity: Severity;
  skipped?: string;
}

export interface Cluster {
  now: string;
  node: string;
  version: string;
  server: string;
  schema: number;
  session_expiry?: string;
  sessions: Session[];
  backup?: Backup;
  folders?: Folder[];
}

export interface Counts {
  now: string;
  failing_jobs: number;
  at_least?: boolean;
  running: number;
  firing_alerts: number;
  unsent_messages?: number;
  nodes_ready: number;
  nodes: number;
  nodes_gone: number;
}

export interface Crontab {
  jobs: CrontabJob[];
  notes?: CrontabNote[];
  refused?: CrontabNote[];
}

export interface CrontabJob {
  line: number;
  text: string;
  words: string;
  notes?: Message[];
  job: unknown;
}

export interface CrontabNote {
  line?: number;
  field?: string;
  message: string;
  code: string;
  values?: string[];
}

export interface DayState {
  date: string;
  weekday: string;
  state: 'open' | 'closed' | 'makeup';
  as?: string;
  hours?: string[];
  why?: string;
}

export interface Definition {
  app: string;
  name: string;
  description: string;
  owner: string;
  labels: Record<string, string>;
  schedule?: string;
  schedules?: string[];
  every?: Duration;
  at?: string;
  delay?: Duration;
  after?: After;
  manual?: boolean;
  timezone?: string;
  start?: string;
  end?: string;
  max_fires?: number;
  jitter?: Duration;
  calendars?: string[];
  on_closed?: string;
  weeks?: Weeks;
  command?: string;
  http?: HTTPCall;
  handler?: string;
  payload?: string;
  timeout?: Duration;
  selector?: string;
  user?: string;
  dir?: string;
  env?: Record<string, string>;
  stdin?: string;
  success_codes?: number[];
  skip_exit_codes?: number[];
  grace?: Duration;
  limits?: Limits;
  params?: Record<string, Param>;
  overlap: Overlap;
  queue?: number;
  group?: string;
  priority?: number;
  start_deadline?: Duration;
  misfire: Misfire;
  retry?: Retry;
  keep?: Keep;
  output?: Capture;
  keep_job?: Duration;
  on_lost: string;
  ping?: Ping;
}

export interface Delivery {
  id: string;
  key: string;
  kind: 'alert' | 'test' | 'ping' | 'heartbeat';
  channel?: string;
  rule?: string;
  target?: string;
  state: 'pending' | 'sending' | 'sent' | 'failed' | 'silenced' | 'suppressed';
  attempts: number;
  next?: string;
  events: number;
  items: AlertItem[];
  said?: string;
  created: string;
  updated: string;
}

export interface Diff {
  from: number;
  to: number;
  changes: Change[];
}

export interface Doctor {
  at: string;
  node: string;
  version: string;
  server: string;
  worst: Severity;
  findings: Finding[];
  checks: Checked[];
}

export type DoctorArea = 'mysql' | 'schema' | 'cluster' | 'machine' | 'jobs' | 'history';

export interface DueTime {
  due: string;
  mark?: Mark;
  moved_from?: string;
}

export type Duration = string;

export interface Ended {
  ended: number;
}

export interface Event {
  id?: string;
  kind: 'hello' | 'run' | 'runs' | 'job' | 'pause' | 'node' | 'backfill' | 'alert' | 'change' | 'reload';
  at: string;
  action: string;
  app?: string;
  job_id?: string;
  job?: string;
  name?: string;
  what?: string;
  who?: string;
  reason?: string;
  run?: Run;
  counts?: RunCounts[];
  other?: RunCounts;
  backfill?: BackfillStatus;
  alert?: Alert;
}

export interface Exclusion {
  name: string;
  why?: string;
  moved_to?: string;
}

export interface Explanation {
  at: string;
  due_time?: string;
  due: boolean;
  cause: 'not_due' | 'gap' | 'repeat' | 'calendar' | 'weeks' | 'shifted' | 'before_start' | 'after_end' | 'max_fires' | 'ahead' | 'paused' | 'overlap' | 'group' | 'nothing_to_do' | 'handler_disabled' | 'deadline' | 'cluster_down' | 'waiting' | 'no_node' | 'app_limit' | 'executing' | 'definition_is_younger' | 'deleted' | 'error' | 'no_record' | 'succeeded' | 'failed' | 'timed_out' | 'killed' | 'lost' | 'skipped' | 'missed' | 'superseded';
  answer: string;
  runs?: Run[];
  before?: DueTime;
  after?: DueTime;
  pause?: Pause;
  waiting?: Wait;
  calendar?: Exclusion;
  down?: Outage;
  changed?: ChangeNote;
  created?: ChangeNote;
  deleted?: ChangeNote;
}

export interface Export {
  items: unknown[];
  unreadable?: UnreadableJob[];
  next?: string;
}

export interface FailedSecret {
  name: string;
  app?: string;
  why: string;
}

export interface FieldProblem {
  field: string;
  message: string;
  code: string;
  values?: string[];
}

export interface Finding {
  check: string;
  code?: string;
  area: DoctorArea;
  severity: Severity;
  seen: string;
  why: string;
  fix: string;
  sql?: string[];
  commands?: string[];
  jobs?: JobMention[];
  nodes?: string[];
}

export interface Folder {
  folder: string;
  digest?: string;
  applied?: string;
  node?: string;
  nodes: FolderNode[];
}

export interface FolderNode {
  node: string;
  state: FolderState;
  digest?: string;
  error?: string;
  since: string;
}

export type FolderState = 'applied' | 'behind' | 'refused';

export interface FrequentJob {
  job_id: string;
  job: string;
  app: string;
  count: number;
}

export interface Grant {
  role: Role;
  apps?: string[];
}

export interface Group {
  name: string;
  slots?: number;
  rate?: string;
  starts?: number;
  next_start?: string;
  executing: number;
  waiting: number;
  jobs: number;
  created: string;
  updated: string;
}

export interface HTTPAnswer {
  status: number;
  proto?: string;
  headers?: string[][];
  connected_ms?: number;
  first_byte_ms?: number;
  complete_ms?: number;
}

export interface HTTPCall {
  method?: string;
  url: string;
  headers?: Record<string, string>;
  body?: string;
  expect?: string[];
  body_limit?: number;
  redirects?: number;
  tls?: HTTPTLS;
  sign?: HTTPSign;
}

export interface HTTPSign {
  secret: string;
}

export interface HTTPTLS {
  skip_verify?: boolean;
  ca?: string;
  server_name?: string;
  client_cert?: string;
  client_key?: string;
}

export interface Handler {
  handler: string;
  nodes: string[];
  jobs: number;
  disabled: boolean;
  reason?: string;
  by?: string;
  since?: string;
}

export interface Health {
  code: 'broken' | 'failing' | 'late' | 'waiting' | 'paused' | 'unstable' | 'running' | 'ok' | 'never';
  text: string;
  failures?: number;
  at_least?: boolean;
  failed?: number;
  of?: number;
  outcome?: string;
  run_id?: string;
  since?: string;
  scope?: Scope;
  by?: string;
}

export interface Import {
  name: string;
  description?: string;
  timezone?: string;
  exclude?: CalendarDay[];
  exclude_weekdays?: string[];
  hours?: CalendarHours;
  include?: CalendarDay[];
  jobs: number;
  version: number;
  created: string;
  updated: string;
  error?: string;
  imported: Imported;
}

export interface Imported {
  excludes: number;
  includes: number;
  ignored?: number;
}

export interface Job {
  id: string;
  app: string;
  name: string;
  description: string;
  owner: string;
  labels: Record<string, string>;
  schedule?: string;
  schedules?: string[];
  every?: Duration;
  at?: string;
  delay?: Duration;
  after?: After;
  manual?: boolean;
  timezone?: string;
  start?: string;
  end?: string;
  max_fires?: number;
  jitter?: Duration;
  calendars?: string[];
  on_closed?: string;
  weeks?: Weeks;
  command?: string;
  http?: HTTPCall;
  handler?: string;
  payload?: string;
  timeout?: Duration;
  selector?: string;
  user?: string;
  dir?: string;
  env?: Record<string, string>;
  stdin?: string;
  success_codes?: number[];
  skip_exit_codes?: number[];
  grace?: Duration;
  limits?: Limits;
  params?: Record<string, Param>;
  overlap: 'skip' | 'queue' | 'replace' | 'allow' | '';
  queue?: number;
  group?: string;
  priority?: number;
  start_deadline?: Duration;
  misfire: Misfire;
  retry?: Retry;
  keep?: Keep;
  output?: Capture;
  keep_job?: Duration;
  on_lost: 'fail' | 'rerun' | '';
  ping?: Ping;
  followers?: string[];
  paused: boolean;
  pause?: Pause;
  status: Status;
  health?: Health;
  error?: string;
  version: number;
  next_due?: string;
  last_due?: string;
  remove_at?: string;
  created: string;
  updated: string;
  warnings?: Message[];
  waiting?: JobWait[];
  last_runs?: LastRun[];
}

export interface JobMention {
  id: string;
  app: string;
  name: string;
}

export interface JobSlots {
  job_id: string;
  job: string;
  app: string;
  timezone?: string;
  total: number;
  holes: number;
  slots?: Slot[];
  buckets?: SlotBucket[];
  uncounted?: boolean;
}

export interface JobStat {
  job_id: string;
  job: string;
  app: string;
  runs: number;
  succeeded: number;
  failed: number;
  lost: number;
  killed: number;
  missed: number;
  skipped: number;
  success_rate?: number;
  duration_p50_ms?: number;
  duration_p95_ms?: number;
  deleted?: boolean;
  health?: Health;
  last_failure?: LastFailure;
}

export interface JobStats {
  now: string;
  from: string;
  counted_from: string;
  failures_from: string;
  cut: boolean;
  totals: JobStatsTotals;
  items: JobStat[];
  truncated: boolean;
}

export interface JobStatsTotals {
  running: number;
  jobs: number;
  failed_jobs: number;
  failing_jobs: number;
  runs: number;
  succeeded: number;
  failed: number;
  lost: number;
  missed: number;
  skipped: number;
  success_rate?: number;
}

export interface JobWait {
  due: string;
  for: 'job' | 'group' | 'node' | 'pause' | 'slot';
  group?: string;
  rate?: string;
  next_start?: string;
  selector?: string;
  since?: string;
  until?: string;
  why: string;
}

export interface Keep {
  age?: Duration;
  runs?: number;
  bytes?: Size;
  failures?: Duration;
}

export interface LastFailure {
  run_id: string;
  due: string;
  ended?: string;
  node?: string;
  outcome: Outcome;
  reason_code?: string;
  reason?: string;
  exit_code?: number;
  last_line?: string;
  recovered?: string;
}

export interface LastRun {
  id: string;
  due: string;
  count?: number;
  started?: string;
  ended?: string;
  state: 'running' | 'ended';
  outcome?: Outcome;
  attempt: number;
  final: boolean;
  trigger: 'schedule' | 'manual' | 'backfill' | 'after';
}

export interface Limits {
  memory?: Size;
  cpu?: number;
  pids?: number;
  open_files?: number;
  cpu_seconds?: number;
  file_size?: Size;
  address_space?: Size;
  core?: Size;
}

export interface LogLevel {
  node: string;
  level: 'debug' | 'info' | 'warn' | 'error';
  until?: string;
}

export interface Login {
  name: string;
  kind: string;
  role: Role;
  apps?: string[];
  grants: Grant[];
  expires?: string;
  login_key: string;
}

export interface LoginRow {
  id: string;
  who: string;
  kind: 'token' | 'oidc';
  grants: Grant[];
  since: string;
  from?: string;
  until: string;
  last_used?: string;
  last_used_from?: string;
  checked?: string;
  check_at?: string;
  current: boolean;
}

export type Mark = 'gap' | 'repeat' | 'makeup' | 'moved';

export interface Me {
  name: string;
  kind: string;
  role: Role;
  apps?: string[];
  grants: Grant[];
  expires?: string;
}

export interface Message {
  message: string;
  code: string;
  values?: string[];
}

export interface Misfire {
  policy?: MisfirePolicy;
  after?: Duration;
  max_age?: Duration;
  max_count?: number;
}

export type MisfirePolicy = 'latest' | 'skip' | 'all';

export interface NewToken {
  id: string;
  name: string;
  role: Role;
  apps?: string[];
  state: 'active' | 'expired' | 'revoked';
  created: string;
  created_by: string;
  expires?: string;
  revoked?: string;
  last_used?: string;
  last_used_from?: string;
  token: string;
}

export interface Node {
  name: string;
  state: NodeState;
  labels: Record<string, string>;
  handlers: string[];
  cordoned: boolean;
  draining: boolean;
  drained: boolean;
  reason?: string;
  by?: string;
  since?: string;
  prepared: number;
  executing: number;
  slots: number;
  gone?: string;
  lost_runs?: number;
  sessions: NodeSession[];
}

export interface NodeSession {
  id: string;
  address?: string;
  version?: string;
  zone_data?: string;
  started: string;
  beat_age_ms: number;
}

export type NodeState = 'ready' | 'cordoning' | 'cordoned' | 'draining' | 'drained' | 'stopping' | 'silent' | 'absent' | 'gone' | 'left';

export interface Outage {
  from?: string;
  to?: string;
}

export type Outcome = 'succeeded' | 'failed' | 'timed_out' | 'killed' | 'lost' | 'skipped' | 'missed' | 'superseded';

export interface Output {
  id: string;
  state: 'running' | 'ended';
  outcome?: Outcome;
  from: number;
  next: number;
  bytes: number;
  lines?: number;
  text: string;
  pieces?: OutputEvent[];
  pending?: boolean;
  marks_stderr?: boolean;
  http?: HTTPAnswer;
}

export interface OutputEvent {
  from: number;
  next: number;
  line?: number;
  text?: string;
  bytes?: string;
  stamps?: number[][];
}

export type Overlap = 'skip' | 'queue' | 'replace' | 'allow';

export interface Param {
  type?: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  default?: ParamValue;
  enum?: ParamValue[];
  required?: boolean;
  secret?: string;
  description?: string;
}

export type ParamValue = string | number | boolean;

export interface Pause {
  scope: Scope;
  app?: string;
  by?: string;
  reason?: string;
  since: string;
  until?: string;
  ended?: string;
  jobs?: number;
}

export interface Ping {
  url: string;
  fail_url?: string;
}

export interface Preview {
  words: string;
  next: DueTime[];
  warnings?: Message[];
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  errors?: FieldProblem[];
  version?: number;
  request_id?: string;
}

export interface Ready {
  ready: boolean;
  reason?: string;
}

export interface Requested {
  job_id: string;
  due: string;
  request: string;
}

export interface Rerun {
  dry_run: boolean;
  started: number;
  refused: number;
  request?: string;
  items: RerunItem[];
  next?: string;
}

export interface RerunItem {
  run_id: string;
  job_id?: string;
  app?: string;
  name?: string;
  due?: string;
  outcome?: Outcome;
  result: 'changed' | 'refused';
  why?: Message;
}

export interface Retention {
  scope: Scope;
  app?: string;
  age?: Duration;
  runs?: number;
  bytes?: Size;
  failures?: Duration;
  archive?: boolean;
}

export interface RetentionWork {
  ended?: string;
  removed: number;
  archived: number;
  failures: number;
  error?: string;
  error_at?: string;
}

export interface Retentions {
  items: Retention[];
  work?: RetentionWork;
}

export interface Retry {
  attempts?: number;
  backoff?: Duration;
  factor?: number;
  max_backoff?: Duration;
  jitter?: Duration;
  on?: Outcome[];
}

export type Role = 'viewer' | 'operator' | 'admin';

export interface Rotated {
  key: string;
  rotated: number;
  failed: FailedSecret[];
}

export interface RuleTest {
  channels: RuleTestChannel[];
}

export interface RuleTestChannel {
  channel: string;
  sent: boolean;
  said: string;
  took_ms: number;
}

export interface Run {
  id: string;
  job_id: string;
  job: string;
  app: string;
  due: string;
  until?: string;
  count?: number;
  started?: string;
  ended?: string;
  lateness_ms?: number;
  attempt: number;
  final: boolean;
  state: 'running' | 'ended';
  outcome?: Outcome;
  reason_code?: string;
  reason?: string;
  exit_code?: number;
  http_status?: number;
  signal?: string;
  node: string;
  session: string;
  trigger: 'schedule' | 'manual' | 'backfill' | 'after';
  request?: string;
  upstream?: Upstream;
  params?: Record<string, ParamValue>;
  output_bytes: number;
  output_truncated: boolean;
  output_removed?: boolean;
  output?: string;
}

export interface RunCounts {
  app?: string;
  job_id?: string;
  job?: string;
  started?: number;
  succeeded?: number;
  failed?: number;
  timed_out?: number;
  killed?: number;
  lost?: number;
  skipped?: number;
  missed?: number;
  superseded?: number;
}

export type Scope = 'job' | 'app' | 'cluster';

export interface Secret {
  name: string;
  app?: string;
  key: string;
  key_state: 'current' | 'old' | 'unknown';
  created: string;
  updated: string;
  updated_by: string;
}

export interface Session {
  id: string;
  node: string;
  address: string;
  pid: number;
  version: string;
  started: string;
  beat_at: string;
  beat_age_ms: number;
  draining: boolean;
  prepared: number;
  executing: number;
  slots: number;
  clock_offset_ms: number;
}

export type Severity = 'unknown' | 'ok' | 'notice' | 'warning' | 'error';

export interface Silence {
  id: string;
  app?: string;
  job?: string;
  rule?: string;
  until: string;
  reason: string;
  by: string;
  created: string;
  over: boolean;
}

export type Size = string;

export interface Slot {
  due: string;
  state: 'succeeded' | 'failed' | 'timed_out' | 'killed' | 'lost' | 'skipped' | 'missed' | 'superseded' | 'running' | 'waiting' | 'paused' | 'ahead' | 'hole';
  run_id?: string;
  attempt?: number;
  node?: string;
  reason_code?: string;
  again?: Outcome;
}

export interface SlotBucket {
  from: string;
  to: string;
  total: number;
  states: Record<string, number>;
  worst?: Slot;
}

export interface Slots {
  from: string;
  to: string;
  now: string;
  items: JobSlots[];
  next?: string;
}

export interface Stats {
  now: string;
  executing: number;
  prepared: number;
  waiting: number;
  backlog: number;
  most: number;
  slots: number;
  nodes: StatsNode[];
  step_seconds: number;
  series: StatsPart[];
  last_minute: StatsRates;
}

export interface StatsNode {
  node: string;
  session: string;
  slots: number;
  executing: number;
  prepared: number;
  draining: boolean;
}

export interface StatsPart {
  at: string;
  starts: number;
  ends: number;
  failed: number;
  lateness_p50_ms?: number;
  lateness_p99_ms?: number;
}

export interface StatsRates {
  starts_per_second: number;
  ends_per_second: number;
  lateness_p50_ms?: number;
  lateness_p99_ms?: number;
}

export type Status = 'active' | 'paused' | 'finished' | 'error';

export interface Token {
  id: string;
  name: string;
  role: Role;
  apps?: string[];
  state: 'active' | 'expired' | 'revoked';
  created: string;
  created_by: string;
  expires?: string;
  revoked?: string;
  last_used?: string;
  last_used_from?: string;
}

export interface UnreadableJob {
  id: string;
  app: string;
  name: string;
  error: string;
}

export interface Upcoming {
  items: UpcomingDue[];
  next?: string;
  frequent?: FrequentJob[];
  frequent_count?: number;
  truncated?: boolean;
  uncounted?: number;
}

export interface UpcomingCounts {
  from: string;
  to: string;
  step: 'minute' | 'hour' | 'day';
  jobs: number;
  total: number;
  counts: number[];
  frequent?: FrequentJob[];
  frequent_count?: number;
  truncated?: boolean;
  uncounted?: number;
}

export interface UpcomingDue {
  job_id: string;
  job: string;
  app: string;
  due: string;
  timezone?: string;
  mark?: Mark;
  moved_from?: string;
}

export interface Upstream {
  job: string;
  run: string;
  outcome: Outcome;
  scheduled: string;
}

export interface Version {
  version: number;
  at: string;
  who?: string;
  current: boolean;
  definition?: Definition;
  error?: string;
}

export interface VersionItem {
  version: number;
  at: string;
  who?: string;
  current: boolean;
  changed: string[];
  error?: string;
}

export interface Wait {
  for: 'job' | 'group' | 'node' | 'pause' | 'slot';
  group?: string;
  rate?: string;
  next_start?: string;
  selector?: string;
  since?: string;
  until?: string;
}

export interface Ways {
  token: boolean;
  oidc?: string;
}

export interface Weeks {
  every: number;
  from: string;
}
