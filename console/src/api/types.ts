// Written by `make generate` from the operations in api/; do not edit.

export interface AccessToken {
  created_at: string;
  expires_at?: string;
  id: string;
  label?: string;
  roles?: string[];
  used_at?: string;
  user: string;
}

export interface AccessTokenList {
  items: AccessToken[] | null;
  next?: string;
}

export interface Action {
  aggregates?: ActionSum[];
  description?: string;
  display?: string;
  input?: unknown;
  inputs?: ActionField[];
  name: string;
  outputs?: ActionField[];
  read_only?: boolean;
  results?: unknown;
  timeout?: number;
}

export interface ActionAnswer {
  data?: unknown;
  message?: string;
  milliseconds?: number;
  node: string;
  state: string;
}

export interface ActionAskRequest {
  batch?: number;
  batch_sleep?: number;
  input?: Record<string, unknown>;
  skip_denied?: boolean;
  targets?: JobTargets;
  texts?: Record<string, string>;
  timeout?: number;
}

export interface ActionAsked {
  action: Action;
  module: string;
  nodes: number;
}

export interface ActionCall {
  action: string;
  actor: string;
  began_at: string;
  counts: Record<string, number> | null;
  ended_at: string;
  id: string;
  input: string;
  left?: boolean;
  module: string;
  nodes: number;
  targets: string;
}

export interface ActionCallList {
  items: ActionCall[] | null;
  next?: string;
}

export interface ActionEvent {
  answer?: ActionAnswer;
  asked?: ActionAsked;
}

export interface ActionField {
  default?: unknown;
  description?: string;
  format?: string;
  max_length?: number;
  name: string;
  required?: boolean;
  sensitive?: boolean;
  title: string;
  type?: string;
  values?: string[];
}

export interface ActionModule {
  actions: Action[] | null;
  author?: string;
  configuration?: unknown;
  description?: string;
  license?: string;
  module: string;
  nodes: number;
  problems?: ActionModuleProblem[];
  url?: string;
  versions: ActionModuleVersion[] | null;
}

export interface ActionModuleList {
  items: ActionModule[] | null;
  next?: string;
}

export interface ActionModuleProblem {
  examples: string[] | null;
  nodes: number;
  problem: string;
  provider: string;
  version?: string;
}

export interface ActionModuleVersion {
  digest: string;
  nodes: number;
  provider: string;
  version?: string;
}

export interface ActionSum {
  field: string;
  format?: string;
  function: string;
  labels?: Record<string, string>;
}

export interface AgentTold {
  arch: string;
  modules: NodeModule[] | null;
  os: string;
  told: string;
  version: string;
}

export interface App {
  components: AppComponent[] | null;
  description?: string;
  environment: string;
  instance: string;
  model: string;
  name: string;
  nodes: string[] | null;
  parameters?: unknown;
  problems?: string[];
}

export interface AppComponent {
  consumes: string[] | null;
  name: string;
  node: string;
  produces: string[] | null;
}

export interface AppList {
  items: App[] | null;
  next?: string;
}

export interface Applied {
  at: string;
  catalog?: string;
  code_id?: string;
  generation?: number;
  uuid: string;
}

export interface AuditChainPage {
  heads: AuditHead[] | null;
  lines: AuditLine[] | null;
  next: number;
}

export interface AuditEntry {
  actor?: string;
  at: string;
  detail?: string;
  id: number;
  kind: string;
  mark?: string;
  object?: string;
  operation: string;
  outcome: string;
  remote?: string;
  request_id?: string;
  token_id?: string;
}

export interface AuditEntryList {
  items: AuditEntry[] | null;
  next?: string;
}

export interface AuditHead {
  at: string;
  digest: string;
  line: number;
  signature: string | null;
  signer: string;
}

export interface AuditLine {
  digest: string;
  text: string;
}

export interface AuditVerification {
  digest?: string;
  first: number;
  heads: number;
  last: number;
  lines: number;
  problem?: string;
  signed_through: number;
  whole: boolean;
}

export interface BlobMissingRequest {
  digests?: string[] | null;
}

export interface BlobMissingResponse {
  missing: string[] | null;
}

export interface BlobUploadResponse {
  blobs: number;
  bytes: number;
}

export interface Build {
  commit?: string;
  date?: string;
  go: string;
  platform: string;
  version: string;
}

export interface Catalog {
  compiled_at: string;
  digest: string;
  edges: Edge[] | null;
  environment: string;
  name: string;
  producer?: string;
  received?: boolean;
  resources: Resource[] | null;
  uuid: string;
  version: string;
}

export interface CatalogDiffRequest {
  digest?: string;
  document?: unknown;
  node?: string;
}

export interface CatalogDifference {
  added: number;
  changed: number;
  classes_added?: string[];
  classes_removed?: string[];
  new: CatalogSide;
  not_compared?: boolean;
  not_listed?: number;
  old: CatalogSide;
  order: OrderDifference;
  removed: number;
  resources: ResourceDifference[] | null;
  same: boolean;
}

export interface CatalogFollows {
  because: string;
  rounds: number;
  stopped_at?: string;
}

export interface CatalogInputs {
  catalog: string;
  compiled_at: string;
  digest: string;
  engine: string;
  environment: string;
  follows?: CatalogFollows;
  name: string;
  questions: InputQuestion[] | null;
  sources: InputSources;
  stands: boolean;
  stops: ReuseStop[] | null;
  values: InputValue[] | null;
  version: string;
  volatile?: string[];
  why?: string;
}

export interface CatalogLet {
  nodes: string[] | null;
}

export interface CatalogLetRequest {
  version?: string;
}

export interface CatalogLoss {
  at: string;
  before: string;
  before_environment: string;
  before_version: string;
  catalog: string;
  environment: string;
  held: boolean;
  node: string;
  resources: number;
  resources_before: number;
  text: string;
  version: string;
}

export interface CatalogLossList {
  items: CatalogLoss[] | null;
  next?: string;
}

export interface CatalogReleaseRequest {
  apply?: string;
  dry_run?: boolean;
  environment?: string;
  expect?: string;
  targets?: JobTargets;
  ticket?: string;
  version?: string;
  why?: string;
}

export interface CatalogReleased {
  counts: Record<string, number> | null;
  digest: string;
  nodes: NodeRelease[] | null;
  ticket: string;
}

export interface CatalogSide {
  compiled_at?: string;
  digest?: string;
  environment?: string;
  name?: string;
  version?: string;
}

export interface Certificate {
  alt_names?: string[];
  extensions?: Record<string, string>;
  fingerprint: string;
  from?: string;
  name: string;
  not_after?: string;
  not_before?: string;
  pem?: string;
  received?: string;
  serial?: string;
  state: string;
}

export interface CertificateList {
  items: Certificate[] | null;
  next?: string;
}

export interface ChangeGroup {
  change: string;
  engine_noise?: string[];
  example?: ResourceDifference;
  examples: string[] | null;
  exported?: boolean;
  file?: string;
  key: string;
  line?: number;
  message?: string;
  nodes: number;
  order_only?: boolean;
  parameters?: string[];
  title?: string;
  type?: string;
}

export interface CodeBranch {
  branch: string;
  commit?: string;
  deployed_at?: string;
  environment: string;
  error?: string;
  gone_at?: string;
  id: number;
  queued_at?: string;
  source: string;
  state: string;
  version?: string;
  waiting?: number;
}

export interface CodeBranchList {
  items: CodeBranch[] | null;
  next?: string;
}

export interface CodeCheck {
  at: string;
  base?: string;
  compiled: number;
  cut?: number;
  files: number;
  findings: CodeFinding[] | null;
  forced?: boolean;
  mistakes: number;
  more?: number;
  new_warnings: number;
  seconds: number;
  sets: number;
  unread?: boolean;
  version: string;
  warnings: number;
}

export interface CodeError {
  cause: string;
  file?: string;
  line?: number;
  message: string;
  names: string[] | null;
  nodes: number;
}

export interface CodeFinding {
  alike?: number;
  column?: number;
  file?: string;
  level: string;
  line?: number;
  message: string;
  new?: boolean;
  nodes?: string[];
}

export interface CodeNodes {
  names: string[] | null;
  nodes: number;
}

export interface CodeSource {
  added_at: string;
  added_by?: string;
  branches?: string[];
  has_key: boolean;
  has_webhook: boolean;
  interval: number;
  looked_at?: string;
  name: string;
  no_puppetfile: boolean;
  prefix?: string;
  purge: boolean;
  refused?: string[];
  submodules: boolean;
  trouble?: string;
  url: string;
}

export interface CodeSourceDetail {
  added_at: string;
  added_by?: string;
  branches?: string[];
  has_key: boolean;
  has_webhook: boolean;
  interval: number;
  known: CodeBranch[] | null;
  looked_at?: string;
  name: string;
  no_puppetfile: boolean;
  prefix?: string;
  purge: boolean;
  refused?: string[];
  submodules: boolean;
  trouble?: string;
  url: string;
}

export interface CodeSourceList {
  items: CodeSource[] | null;
  next?: string;
}

export interface CodeStatus {
  check?: CodeCheck;
  current: number;
  deployed_at: string;
  environment: string;
  errors: CodeError[] | null;
  failed: number;
  held: number;
  losses?: string[];
  no_catalog: number;
  no_facts?: CodeNodes;
  nodes: number;
  slowed?: CompileSlowed;
  unknown: number;
  untried?: CodeNodes;
  verified?: CodeVerified;
  version: string;
  waiting: number;
  warned: number;
}

export interface CodeVerified {
  differs: number;
  failed: number;
  nodes?: string[];
  not_comparable: number;
  same: number;
}

export interface Compilation {
  attempts: number;
  catalog?: string;
  cpu_ms: number;
  environment: string;
  error?: CompileError;
  finished_at?: string;
  id: number;
  node: string;
  peak_bytes: number;
  priority: string;
  rests_until?: string;
  reused?: boolean;
  staged?: boolean;
  state: string;
  trouble?: string;
  version: string;
  wall_ms: number;
  wanted_at: string;
  worker?: string;
}

export interface CompilationList {
  items: Compilation[] | null;
  next?: string;
}

export interface CompilationRecord {
  attempts: number;
  catalog?: string;
  checks?: number;
  cpu_ms: number;
  environment: string;
  error?: CompileError;
  facts_seq: number;
  finished_at?: string;
  id: number;
  inputs?: CompileInputs;
  logs: CompileLog[] | null;
  node: string;
  peak_bytes: number;
  priority: string;
  rests_until?: string;
  reused?: boolean;
  staged?: boolean;
  state: string;
  trouble?: string;
  version: string;
  wall_ms: number;
  wanted_at: string;
  worker?: string;
}

export interface CompileEnded {
  compiled: number;
  environment: string;
  failed: number;
  reused: number;
  seconds: number;
}

export interface CompileError {
  cause: string;
  file?: string;
  line?: number;
  message: string;
  pos?: number;
}

export interface CompileInputs {
  digest: string;
  engine: string;
  questions: number;
  sources: number;
  values: number;
  volatile?: string[];
}

export interface CompileLane {
  environment: string;
  oldest?: string;
  priority: string;
  resting: number;
  running: number;
  wanted: number;
}

export interface CompileLog {
  file?: string;
  level: string;
  line?: number;
  message: string;
}

export interface CompileNowAnswer {
  items: Compilation[] | null;
  next?: string;
  pauses: CompilePaused[] | null;
  refused: CompileRefused[] | null;
}

export interface CompileNowRequest {
  after?: string;
  environment?: string;
  nodes?: string[];
  where?: string;
}

export interface CompilePauseRequest {
  environment?: string;
  reason?: string;
}

export interface CompilePaused {
  at: string;
  by: string;
  environment?: string;
  reason?: string;
}

export interface CompileQueueStatus {
  ended: CompileEnded[] | null;
  lanes: CompileLane[] | null;
  now: Compilation[] | null;
  oldest?: string;
  pauses: CompilePaused[] | null;
  resting: number;
  running: number;
  slowed: CompileSlowed[] | null;
  wanted: number;
}

export interface CompileRefused {
  node: string;
  why: string;
}

export interface CompileResumeRequest {
  environment?: string;
}

export interface CompileSlowed {
  environment: string;
  previews?: boolean;
  rests_until: string;
  since: string;
  timeouts: number;
  version: string;
}

export interface CompileVerifyRequest {
  node?: string;
  version?: string;
}

export interface Connected {
  agent?: string;
  client?: string;
  client_version?: string;
  protocol: string;
  server: string;
  shared?: string;
  since: string;
}

export interface Delivered {
  generation?: number;
  loss?: CatalogLoss;
  mode: string;
  mode_from: string;
  mode_group?: string;
  pinned?: boolean;
  state: string;
}

export interface Delivery {
  applied?: Applied;
  generations: Generation[] | null;
  mode: string;
  mode_from: string;
  mode_group?: string;
  name: string;
  pin?: Pin;
  pointer?: Pointer;
  state: string;
  why?: string;
}

export interface DeployRequest {
  check?: string;
  commit?: string;
  manifest?: unknown;
  origin?: string;
}

export interface Deployed {
  actor?: string;
  bytes: number;
  check?: CodeCheck;
  commit?: string;
  deployed_at: string;
  engine?: string;
  environment: string;
  files: number;
  id: string;
  new_environment?: boolean;
  origin?: string;
}

export interface Edge {
  relationship: string;
  source: string;
  target: string;
}

export interface EdgeDifference {
  change: string;
  implied?: boolean;
  source: string;
  target: string;
}

export interface Engine {
  by?: string;
  default: boolean;
  environments: string[] | null;
  gems?: string[];
  interpreter?: string;
  jit: boolean;
  name: string;
  puppet?: string;
  ruby?: string;
  trouble?: string;
}

export interface EngineList {
  items: Engine[] | null;
  next?: string;
}

export interface Event {
  containment?: string[];
  corrective?: boolean;
  environment?: string;
  file?: string;
  job?: string;
  kind: string;
  line?: number;
  message?: string;
  missing?: number;
  n: number;
  name?: string;
  new?: unknown;
  node: string;
  noop?: boolean;
  number: number;
  old?: unknown;
  pending?: number;
  property?: string;
  redacted?: boolean;
  reported?: boolean;
  run: string;
  status?: string;
  stored_at: string;
  time: string;
  title?: string;
  type?: string;
  version?: string;
}

export interface EventList {
  items: Event[] | null;
  next?: string;
}

export interface Facts {
  digest: string;
  environment: string;
  name: string;
  received_at: string;
  timestamp: string;
  values: unknown;
}

export interface FailedResource {
  file?: string;
  line?: number;
  message: string;
  property?: string;
  resource: string;
  time: string;
}

export interface FleetDifference {
  changed: number;
  errors: number;
  groups: ChangeGroup[] | null;
  nodes: number;
  not_listed?: number;
  order_only: number;
  same: number;
}

export interface Freeze {
  at: string;
  author: string;
  environments?: string[];
  from?: string;
  name: string;
  removed?: boolean;
  to?: string;
  until?: string;
  version: number;
  weekly?: string;
  why: string;
  zone: string;
}

export interface FreezeDefinition {
  environments?: string[];
  from?: string;
  to?: string;
  weekly?: string;
  why?: string;
  zone?: string;
}

export interface FreezeList {
  items: Freeze[] | null;
  next?: string;
}

export interface FreezeSetRequest {
  definition?: FreezeDefinition;
}

export interface Frozen {
  freezes: string[] | null;
  until: string;
  why: string;
}

export interface Generation {
  at: string;
  by: string;
  catalog: string;
  compiled_at: string;
  environment: string;
  number: number;
  release?: number;
  uuid: string;
  version: string;
  why?: string;
}

export interface Grant {
  actions?: string[];
  environments?: string[];
  nodes?: string;
  permission?: string;
  tasks?: string[];
}

export interface Group {
  changed_at?: string;
  changed_by?: string;
  classes?: Record<string, Record<string, unknown>>;
  data?: Record<string, Record<string, unknown>>;
  defect?: string;
  description?: string;
  environment?: string;
  environment_group: boolean;
  id: string;
  name: string;
  nodes?: string[];
  parent: string;
  parent_id: string;
  revision: number;
  rule?: unknown;
  rule_text?: string;
  variables?: Record<string, unknown>;
  warnings?: string[];
}

export interface GroupApplyRequest {
  dry_run?: boolean;
  groups?: GroupSpec[] | null;
  revision?: number;
}

export interface GroupApplyResponse {
  applied: boolean;
  changes: GroupChange[] | null;
  revision: number;
  warnings?: string[];
}

export interface GroupChange {
  differences: GroupDifference[] | null;
  id: string;
  kind: string;
  name: string;
}

export interface GroupConflict {
  class?: string;
  kind: string;
  name?: string;
  origins: GroupOrigin[] | null;
}

export interface GroupCreateRequest {
  group?: GroupSpec;
}

export interface GroupDifference {
  field: string;
  new?: string;
  old?: string;
}

export interface GroupEditRequest {
  group?: GroupSpec;
  revision?: number;
}

export interface GroupExplanation {
  classes: Record<string, Record<string, unknown>> | null;
  conflicts: GroupConflict[] | null;
  data: Record<string, Record<string, unknown>> | null;
  environment?: string;
  facts_known: boolean;
  groups: GroupMembership[] | null;
  node: string;
  origins: GroupOrigin[] | null;
  trusted_known: boolean;
  variables: Record<string, unknown> | null;
}

export interface GroupFinding {
  condition: string;
  found?: unknown;
  holds: boolean;
}

export interface GroupList {
  items: Group[] | null;
  next?: string;
}

export interface GroupMembership {
  defect?: string;
  depth: number;
  id: string;
  leaf: boolean;
  member: boolean;
  name: string;
  pinned: boolean;
  stopped_by?: string;
  why: GroupFinding[] | null;
}

export interface GroupModeRequest {
  mode?: string;
}

export interface GroupNode {
  name: string;
  pinned: boolean;
}

export interface GroupNodeList {
  items: GroupNode[] | null;
  next?: string;
}

export interface GroupOrigin {
  class?: string;
  group: string;
  group_id: string;
  kind: string;
  name?: string;
  state: string;
  value: unknown;
  via: string[] | null;
}

export interface GroupSpec {
  classes?: Record<string, Record<string, unknown>>;
  data?: Record<string, Record<string, unknown>>;
  description?: string;
  environment?: string;
  environment_group?: boolean;
  id?: string;
  name?: string;
  nodes?: string[];
  parent?: string;
  rule?: unknown;
  variables?: Record<string, unknown>;
}

export interface HiddenChanges {
  changes: number;
  rule: string;
  version: number;
}

export interface InputQuestion {
  kind: string;
  refused?: boolean;
  rows: number;
  text: string;
}

export interface InputSources {
  anywhere: string[] | null;
  files: string[] | null;
  lists: string[] | null;
  modules: string[] | null;
  names: string[] | null;
  trees: string[] | null;
}

export interface InputValue {
  pointer: string;
  seen?: boolean;
  there: boolean;
}

export interface IssuedToken {
  created_at: string;
  expires_at?: string;
  id: string;
  label?: string;
  roles?: string[];
  token: string;
  used_at?: string;
  user: string;
}

export interface Job {
  actor: string;
  concurrency?: number;
  counts: Record<string, number> | null;
  created_at: string;
  description?: string;
  environment?: string;
  finished_at?: string;
  id: string;
  kind: string;
  max_failures?: number;
  nodes: number;
  noop?: boolean;
  order?: unknown;
  ordered?: boolean;
  reason?: string;
  rerun_of?: string;
  started_at?: string;
  state: string;
  targets: JobTargets;
  timeout?: number;
  title: string;
  version?: string;
  wait_offline?: number;
}

export interface JobActionRequest {
  action?: string;
  concurrency?: number;
  description?: string;
  dry_run?: boolean;
  expect?: string;
  input?: Record<string, unknown>;
  max_failures?: number;
  module?: string;
  ordered?: boolean;
  skip_denied?: boolean;
  targets?: JobTargets;
  texts?: Record<string, string>;
  timeout?: number;
  wait_offline?: number;
}

export interface JobCommandRequest {
  command?: string;
  concurrency?: number;
  description?: string;
  dry_run?: boolean;
  expect?: string;
  max_failures?: number;
  ordered?: boolean;
  skip_denied?: boolean;
  targets?: JobTargets;
  timeout?: number;
  wait_offline?: number;
}

export interface JobEvent {
  job?: Job;
  number: number;
  run?: JobRun;
}

export interface JobFileEntry {
  destination?: string;
  digest?: string;
  kind?: string;
  source?: string;
}

export interface JobFileRequest {
  concurrency?: number;
  description?: string;
  dry_run?: boolean;
  expect?: string;
  files?: JobFileEntry[] | null;
  max_failures?: number;
  ordered?: boolean;
  skip_denied?: boolean;
  targets?: JobTargets;
  timeout?: number;
  wait_offline?: number;
}

export interface JobLine {
  at: string;
  more?: boolean;
  node: string;
  number: number;
  stream: string;
  text: string;
}

export interface JobLineList {
  items: JobLine[] | null;
  next?: string;
}

export interface JobList {
  items: Job[] | null;
  next?: string;
}

export interface JobPlan {
  changes?: FleetDifference;
  denied?: string[];
  denied_unseen?: number;
  digest: string;
  never_connected?: string[];
  nodes: number;
  offline?: string[];
  targets?: JobTarget[];
  uncompared?: number;
}

export interface JobPuppetRequest {
  concurrency?: number;
  debug?: boolean;
  description?: string;
  dry_run?: boolean;
  environment?: string;
  evaltrace?: boolean;
  expect?: string;
  max_failures?: number;
  noop?: boolean;
  ordered?: boolean;
  show_diff?: boolean;
  skip_denied?: boolean;
  skip_tags?: string[];
  tags?: string[];
  targets?: JobTargets;
  timeout?: number;
  trace?: boolean;
  use_cached_catalog?: boolean;
  wait_offline?: number;
}

export interface JobRerunRequest {
  concurrency?: number;
  description?: string;
  dry_run?: boolean;
  expect?: string;
  max_failures?: number;
  noop?: boolean;
  only?: string;
  params?: unknown;
  skip_denied?: boolean;
  texts?: Record<string, string>;
  timeout?: number;
  wait_offline?: number;
}

export interface JobRun {
  exit_code?: number;
  finished_at?: string;
  job: string;
  node: string;
  output: JobRunOutput;
  puppet?: JobRunPuppet;
  reason?: string;
  sent_at?: string;
  started_at?: string;
  state: string;
  transaction: string;
}

export interface JobRunList {
  items: JobRun[] | null;
  next?: string;
}

export interface JobRunOutput {
  bytes: number;
  cut?: boolean;
  digest?: string;
  lines: number;
}

export interface JobRunPuppet {
  cached_catalog?: boolean;
  environment?: string;
  error_type?: string;
  failed?: number;
  first_failed?: string;
  held?: string;
  message?: string;
  metrics?: Record<string, number>;
  pending?: number;
  report?: string;
  status: string;
  transaction_uuid?: string;
}

export interface JobScriptRequest {
  arguments?: string[];
  concurrency?: number;
  description?: string;
  digest?: string;
  dry_run?: boolean;
  expect?: string;
  max_failures?: number;
  name?: string;
  ordered?: boolean;
  skip_denied?: boolean;
  targets?: JobTargets;
  timeout?: number;
  wait_offline?: number;
}

export interface JobStarted {
  job?: Job;
  plan: JobPlan;
}

export interface JobStopRequest {
  kill?: boolean;
}

export interface JobTarget {
  connected?: Connected;
  expected?: string;
  layer?: number;
  node: string;
  waits_for?: string[];
}

export interface JobTargets {
  all?: boolean;
  app?: string;
  exclude?: string[];
  filter?: NodeFilter;
  group?: string;
  limit?: string;
  nodes?: string[];
  query?: string;
  seed?: number;
}

export interface JobTaskRequest {
  concurrency?: number;
  description?: string;
  dry_run?: boolean;
  environment?: string;
  expect?: string;
  max_failures?: number;
  noop?: boolean;
  ordered?: boolean;
  params?: unknown;
  skip_denied?: boolean;
  targets?: JobTargets;
  task?: string;
  texts?: Record<string, string>;
  timeout?: number;
  wait_offline?: number;
}

export interface JobUploaded {
  bytes: number;
  digest: string;
}

export interface JoinToken {
  ca_fingerprint: string;
  expires: string;
  token: string;
}

export interface JoinTokenRequest {
  name?: string;
  seconds?: number;
}

export interface LastSeen {
  agent?: string;
  client?: string;
  client_version?: string;
  since: string;
  until: string;
}

export interface LoginLink {
  expires_at: string;
  url: string;
}

export interface LoginRequest {
  code?: string;
  label?: string;
  name?: string;
  password?: string;
  roles?: string[];
  seconds?: number;
}

export interface LookedUp {
  environment: string;
  explanation?: string;
  found: boolean;
  hidden?: boolean;
  keys: string[] | null;
  logs?: CompileLog[];
  node: string;
  problem?: string;
  value?: unknown;
  version: string;
}

export interface ModeSet {
  at: string;
  by: string;
  group?: string;
  mode: string;
  node?: string;
}

export interface ModeSetList {
  items: ModeSet[] | null;
  next?: string;
}

export interface ModeSwitched {
  switched: number;
}

export interface Node {
  agent?: AgentTold;
  cached_catalog?: boolean;
  catalog_at?: string;
  catalog_digest?: string;
  certificate?: string;
  compile_error?: NodeError;
  connected?: Connected;
  corrective?: boolean;
  deactivated_at?: string;
  delivery?: Delivered;
  environment?: string;
  expired_at?: string;
  facts_at?: string;
  joined_at?: string;
  last_connected?: LastSeen;
  name: string;
  noop?: boolean;
  pending?: number;
  report_at?: string;
  report_id?: string;
  state: string;
  status?: string;
}

export interface NodeConnections {
  never: number;
  no: number;
  yes: number;
}

export interface NodeCounts {
  connections: NodeConnections;
  late: number;
  nodes: number;
  states: NodeStateCounts;
}

export interface NodeEdge {
  node: string;
  waits_for: string;
  why: string[] | null;
}

export interface NodeError {
  at: string;
  cause: string;
  file?: string;
  line?: number;
  message: string;
  version: string;
}

export interface NodeFilter {
  classes?: string[];
  facts?: string[];
  modules?: string[];
  names?: string[];
  select?: string;
  words?: string[];
}

export interface NodeGraph {
  cycle?: string[];
  edges: NodeEdge[] | null;
  layers: string[][] | null;
  problems?: string[];
  shared?: SharedNodes[];
}

export interface NodeList {
  items: Node[] | null;
  next?: string;
}

export interface NodeLookupRequest {
  "-"?: string;
  compile?: boolean;
  default?: string;
  environment?: string;
  explain?: boolean;
  keys?: string[] | null;
  knockout_prefix?: string;
  merge?: string;
  merge_hash_arrays?: boolean;
  sort_merged_arrays?: boolean;
}

export interface NodeMatchPart {
  holds: string;
  part: string;
  why: string;
}

export interface NodeMatchRequest {
  targets?: JobTargets;
}

export interface NodeMatched {
  holds: string;
  node: string;
  parts: NodeMatchPart[] | null;
}

export interface NodeMatchedList {
  items: NodeMatched[] | null;
  next?: string;
}

export interface NodeModeRequest {
  mode?: string;
}

export interface NodeModule {
  name: string;
  problem?: string;
  provider: string;
  version?: string;
}

export interface NodePinRequest {
  why?: string;
}

export interface NodePingRequest {
  targets?: JobTargets;
  timeout?: number;
}

export interface NodeReasons {
  compile_error?: NodeError;
  failed: FailedResource[] | null;
  failed_count: number;
  last_good?: Report;
  log: ReportLog[] | null;
  node: string;
  other_catalog?: boolean;
  report?: Report;
  skipped: SkippedResource[] | null;
  skipped_count: number;
  state: string;
}

export interface NodeRelease {
  before?: string;
  catalog?: string;
  environment: string;
  generation?: number;
  node: string;
  reason?: string;
  state: string;
  version?: string;
}

export interface NodeStateCounts {
  changed: number;
  corrective: number;
  failed: number;
  none: number;
  pending: number;
  unchanged: number;
}

export interface Noise {
  change?: string;
  environments?: string[];
  nodes?: string;
  parameters?: string[];
  title?: string;
  type?: string;
  why?: string;
}

export interface NoiseRule {
  at: string;
  author: string;
  change?: string;
  environments?: string[];
  name: string;
  nodes?: string;
  parameters?: string[];
  removed?: boolean;
  title?: string;
  type?: string;
  version: number;
  why?: string;
}

export interface NoiseRuleList {
  items: NoiseRule[] | null;
  next?: string;
}

export interface NoiseSetRequest {
  noise?: Noise;
}

export interface NoiseSuggestion {
  name: string;
  noise: Noise;
  people: string[] | null;
  previews: number;
  titles: string[] | null;
}

export interface NoiseSuggestionList {
  items: NoiseSuggestion[] | null;
  next?: string;
}

export interface OrderDifference {
  edge_count: number;
  edges?: EdgeDifference[];
  moved: number;
  resources: number;
  tags_added?: string[];
  tags_removed?: string[];
}

export interface ParameterDifference {
  binary?: boolean;
  change: string;
  engine_noise?: string[];
  hidden?: boolean;
  name: string;
  new?: unknown;
  new_digest?: string;
  note?: string;
  old?: unknown;
  old_digest?: string;
  order_only?: boolean;
  path?: string;
  text?: string;
}

export interface PasswordRequest {
  new?: string;
  old?: string;
}

export interface Pin {
  at: string;
  by: string;
  why: string;
}

export interface Pointer {
  catalog: string;
  compiled_at: string;
  environment: string;
  generation?: number;
  uuid: string;
  version: string;
}

export interface Policy {
  at: string;
  author: string;
  author_may?: boolean;
  effect: string;
  environments?: string[];
  message: string;
  name: string;
  removed?: boolean;
  role?: string;
  version: number;
  when: string;
  zone?: string;
}

export interface PolicyDefinition {
  author_may?: boolean;
  effect?: string;
  environments?: string[];
  message?: string;
  role?: string;
  when?: string;
  zone?: string;
}

export interface PolicyFinding {
  author_may?: boolean;
  broken?: string;
  changes?: string[];
  effect: string;
  found?: number;
  message: string;
  nodes: number;
  policy: string;
  role?: string;
  version?: number;
}

export interface PolicyList {
  items: Policy[] | null;
  next?: string;
}

export interface PolicySetRequest {
  definition?: PolicyDefinition;
}

export interface PolicyTestRequest {
  at?: string;
  definition?: PolicyDefinition;
  policy?: string;
}

export interface PolicyVerdict {
  findings: PolicyFinding[] | null;
  frozen?: Frozen;
}

export interface Pong {
  connected?: Connected;
  last_connected?: LastSeen;
  milliseconds?: number;
  node: string;
}

export interface PongList {
  items: Pong[] | null;
  next?: string;
}

export interface Preview {
  author: string;
  check?: CodeCheck;
  commit?: string;
  counts: Record<string, number> | null;
  created_at: string;
  description?: string;
  ended_at?: string;
  engine?: string;
  engine_only?: number;
  environment: string;
  id: string;
  nodes: number;
  quiet?: number;
  reason?: string;
  state: string;
  targets: string;
  unseen?: Unseen[];
  version: string;
}

export interface PreviewChange {
  acknowledged?: string;
  change: string;
  engine_noise?: string[];
  example?: ResourceDifference;
  examples: string[] | null;
  exported?: boolean;
  file?: string;
  key: string;
  line?: number;
  message?: string;
  nodes: number;
  noise?: string;
  order_only?: boolean;
  parameters?: string[];
  remarks?: PreviewRemark[];
  title?: string;
  type?: string;
}

export interface PreviewCreateRequest {
  commit?: string;
  description?: string;
  engine?: string;
  manifest?: unknown;
  origin?: string;
  targets?: JobTargets;
  version?: string;
}

export interface PreviewEvent {
  changes: ChangeGroup[] | null;
  number: number;
  preview: Preview;
}

export interface PreviewList {
  items: Preview[] | null;
  next?: string;
}

export interface PreviewNode {
  base?: string;
  catalog?: string;
  engine_only?: boolean;
  file?: string;
  line?: number;
  message?: string;
  name: string;
  quiet?: boolean;
  reused?: boolean;
  state: string;
  volatile?: string;
}

export interface PreviewNodeList {
  items: PreviewNode[] | null;
  next?: string;
}

export interface PreviewRemark {
  at: string;
  author: string;
  change?: string;
  kind: string;
  text?: string;
}

export interface PreviewRemarkList {
  items: PreviewRemark[] | null;
  next?: string;
}

export interface PreviewReport {
  author: string;
  changes: PreviewChange[] | null;
  check?: CodeCheck;
  commit?: string;
  counts: Record<string, number> | null;
  created_at: string;
  description?: string;
  ended_at?: string;
  engine?: string;
  engine_only?: number;
  environment: string;
  hidden?: HiddenChanges[];
  id: string;
  next?: string;
  nodes: number;
  quiet?: number;
  reason?: string;
  remarks: PreviewRemark[] | null;
  state: string;
  targets: string;
  unseen?: Unseen[];
  version: string;
}

export interface PreviewSayRequest {
  all?: boolean;
  changes?: string[];
  kind?: string;
  text?: string;
}

export interface PreviewWarned {
  items: PreviewWarning[] | null;
  unknown: number;
}

export interface PreviewWarning {
  examples: string[] | null;
  file?: string;
  level: string;
  line?: number;
  message: string;
  new: boolean;
  nodes: number;
}

export interface Problem {
  check?: CodeCheck;
  hint?: string;
  kind: string;
  message: string;
  request_id?: string;
  retry_after?: number;
}

export interface QueryAnswer {
  columns: string[] | null;
  problem?: Problem;
  rows: unknown[] | null;
  total?: number;
}

export interface QueryRequest {
  query?: string;
  total?: boolean;
}

export interface Release {
  author: string;
  counts: Record<string, number> | null;
  created_at: string;
  description?: string;
  digest: string;
  ended_at?: string;
  environment?: string;
  failures: number;
  hold?: string;
  id?: string;
  kind: string;
  nodes: number;
  options: ReleaseOptions;
  preview?: string;
  reason?: string;
  revision: number;
  rolls_back?: string;
  started_at?: string;
  state: string;
  until?: string;
  version?: string;
  wave: number;
  waves: ReleaseWave[] | null;
}

export interface ReleaseAbortRequest {
  kill?: boolean;
  why?: string;
}

export interface ReleaseActRequest {
  why?: string;
}

export interface ReleaseApproval {
  at: string;
  by: string;
  role: string;
  text?: string;
}

export interface ReleaseCreateRequest {
  approve_by?: string;
  concurrency?: number;
  description?: string;
  dry_run?: boolean;
  max_failures?: number;
  noop_first?: boolean;
  preview?: number;
  promote?: string;
  refresh?: boolean;
  soak?: number;
  targets?: JobTargets;
  timeout?: number;
  wait_offline?: number;
  waves?: string[];
}

export interface ReleaseEntry {
  at: string;
  by?: string;
  text: string;
}

export interface ReleaseFinding {
  effect: string;
  message: string;
  nodes?: number;
  role?: string;
  rule: string;
}

export interface ReleaseList {
  items: Release[] | null;
  next?: string;
}

export interface ReleaseNeed {
  message?: string;
  met: boolean;
  role: string;
  rule?: string;
}

export interface ReleaseOptions {
  approve_by?: string;
  concurrency?: number;
  max_failures?: number;
  noop_first?: boolean;
  promote?: string;
  soak?: number;
  timeout?: number;
  wait_offline?: number;
  waves?: string[];
}

export interface ReleaseRefreshed {
  preview: string;
}

export interface ReleaseReport {
  already?: number;
  approvals?: ReleaseApproval[];
  author: string;
  counts: Record<string, number> | null;
  created_at: string;
  description?: string;
  difference?: FleetDifference;
  digest: string;
  ended_at?: string;
  entries?: ReleaseEntry[];
  environment?: string;
  failures: number;
  findings?: ReleaseFinding[];
  frozen?: string;
  hold?: string;
  id?: string;
  kind: string;
  left?: ReleaseTarget[];
  needs?: ReleaseNeed[];
  nodes: number;
  options: ReleaseOptions;
  preview?: string;
  reason?: string;
  refreshed?: string;
  revision: number;
  rolls_back?: string;
  started_at?: string;
  state: string;
  until?: string;
  vanishing?: Vanishing;
  version?: string;
  wave: number;
  waves: ReleaseWave[] | null;
}

export interface ReleaseResumeRequest {
  max_failures?: number;
}

export interface ReleaseTarget {
  base?: string;
  catalog?: string;
  generation?: number;
  name: string;
  reason?: string;
  report?: string;
  revision?: number;
  state: string;
  wave?: number;
}

export interface ReleaseTargetList {
  items: ReleaseTarget[] | null;
  next?: string;
}

export interface ReleaseWave {
  ended_at?: string;
  job?: string;
  nodes: number;
  number: number;
  rehearsal?: string;
  round: number;
  size: string;
  started_at?: string;
  state: string;
}

export interface Report {
  cached_catalog_status?: string;
  catalog_uuid?: string;
  completed: boolean;
  corrective_change: boolean;
  counts: ReportCounts;
  environment: string;
  id: string;
  job_id?: string;
  kept_in_short?: boolean;
  logs?: ReportLog[];
  metrics?: unknown;
  name: string;
  noop: boolean;
  noop_pending: boolean;
  puppet_version: string;
  received_at: string;
  resources?: ReportResource[];
  seconds: number;
  started_at: string;
  status: string;
  transaction_uuid: string;
  version: string;
}

export interface ReportCounts {
  changed: number;
  corrective: number;
  failed: number;
  noop: number;
  resources: number;
  skipped: number;
  unchanged: number;
}

export interface ReportEvent {
  desired?: unknown;
  message?: string;
  previous?: unknown;
  property?: string;
  status: string;
  time: string;
}

export interface ReportList {
  items: Report[] | null;
  next?: string;
}

export interface ReportLog {
  file?: string;
  level: string;
  line?: number;
  message: string;
  source?: string;
  time: string;
}

export interface ReportResource {
  corrective?: boolean;
  events?: ReportEvent[];
  file?: string;
  line?: number;
  seconds?: number;
  status: string;
  title: string;
  type: string;
}

export interface RequestCleanResponse {
  dropped: number;
}

export interface Resource {
  exported?: boolean;
  file?: string;
  line?: number;
  parameters?: unknown;
  tags?: string[];
  title: string;
  type: string;
}

export interface ResourceComparison {
  differing: string[] | null;
  nodes: number;
  title: string;
  type: string;
  variants: ResourceVariant[] | null;
}

export interface ResourceComparisonList {
  items: ResourceComparison[] | null;
  next?: string;
}

export interface ResourceDifference {
  change: string;
  exported?: boolean;
  file?: string;
  line?: number;
  noise?: string;
  not_listed?: number;
  order_only?: boolean;
  parameters?: ParameterDifference[];
  tags_added?: string[];
  tags_removed?: string[];
  title: string;
  type: string;
}

export interface ResourceVariant {
  examples: string[] | null;
  nodes: number;
  parameters?: unknown;
}

export interface ReuseStop {
  at: string;
  differs: string[] | null;
  fresh: string;
  inputs: string;
  reused: string;
  version: string;
}

export interface RevokedTokens {
  revoked: number;
}

export interface Role {
  built_in?: boolean;
  changed_at?: string;
  changed_by?: string;
  description?: string;
  grants: Grant[] | null;
  name: string;
}

export interface RoleCreateRequest {
  description?: string;
  grants?: Grant[] | null;
  name?: string;
}

export interface RoleEditRequest {
  description?: string;
  grants?: Grant[] | null;
}

export interface RoleList {
  items: Role[] | null;
  next?: string;
}

export interface RollbackRequest {
  approve_by?: string;
  concurrency?: number;
  description?: string;
  dry_run?: boolean;
  max_failures?: number;
  nodes?: string[];
  noop_first?: boolean;
  promote?: string;
  release?: number;
  soak?: number;
  timeout?: number;
  to?: number;
  wait_offline?: number;
  waves?: string[];
}

export interface Session {
  expires_at?: string;
  grants: Grant[] | null;
  kind: string;
  name: string;
  narrowed_to?: string[];
  roles: string[] | null;
  token_id?: string;
}

export interface SharedNodes {
  nodes: string[] | null;
  type: string;
}

export interface SkippedResource {
  because?: string;
  file?: string;
  line?: number;
  resource: string;
}

export interface SourceAddRequest {
  branches?: string[];
  interval?: number;
  key?: string;
  known_hosts?: string;
  no_puppetfile?: boolean;
  prefix?: string;
  purge?: boolean;
  replace?: boolean;
  submodules?: boolean;
  url?: string;
  webhook_secret?: string;
}

export interface SourceDeployRequest {
  all?: boolean;
  dry_run?: boolean;
  environments?: string[];
  wait?: boolean;
}

export interface SourceSyncRequest {
  purge?: boolean;
  wait?: boolean;
}

export interface SourceSynced {
  deploys: CodeBranch[] | null;
  gone: CodeBranch[] | null;
  purged: string[] | null;
  refused: string[] | null;
}

export interface StringList {
  items: string[] | null;
  next?: string;
}

export interface Task {
  any_parameters?: boolean;
  description?: string;
  environment: string;
  files?: TaskFile[];
  implementations?: TaskImplementation[];
  input_method?: string;
  name: string;
  parameters?: TaskParameter[];
  private?: boolean;
  problem?: string;
  supports_noop?: boolean;
  version: string;
}

export interface TaskFile {
  bytes: number;
  digest: string;
  name: string;
}

export interface TaskImplementation {
  input_method?: string;
  name: string;
  requirements?: string[];
}

export interface TaskList {
  items: Task[] | null;
  next?: string;
}

export interface TaskParameter {
  default?: unknown;
  description?: string;
  name: string;
  required: boolean;
  sensitive?: boolean;
  type: string;
}

export interface TokenCreateRequest {
  label?: string;
  roles?: string[];
  seconds?: number;
}

export interface Unseen {
  nodes: number;
  reason: string;
}

export interface Usage {
  areas: UsageArea[] | null;
  at: string;
  bytes: number;
  disk: UsageDisk;
  growth_per_day?: number;
  since?: string;
}

export interface UsageArea {
  area: string;
  bytes: number;
  growth_per_day?: number;
}

export interface UsageDisk {
  free_bytes: number;
  full_at?: string;
  read_only: boolean;
}

export interface User {
  changed_at?: string;
  changed_by?: string;
  created_at: string;
  kind: string;
  locked_until?: string;
  login_at?: string;
  name: string;
  roles: string[] | null;
  state: string;
}

export interface UserCreateRequest {
  kind?: string;
  name?: string;
  password?: string;
  roles?: string[];
}

export interface UserEditRequest {
  disabled?: boolean;
  roles?: string[];
  unlock?: boolean;
}

export interface UserList {
  items: User[] | null;
  next?: string;
}

export interface Vanishing {
  distinct: number;
  nodes: number;
  resources: number;
}

export interface Verification {
  at: string;
  catalog?: string;
  cause: string;
  count: number;
  differences: VerifyDifference[] | null;
  environment: string;
  id: number;
  node: string;
  outcome: string;
  reason?: string;
  version: string;
  wall_ms: number;
}

export interface VerificationList {
  items: Verification[] | null;
  next?: string;
}

export interface VerifyDifference {
  plain?: string;
  resource?: string;
  tutti?: string;
  what: string;
}

export interface Version {
  actor?: string;
  bytes: number;
  commit?: string;
  deployed_at: string;
  engine?: string;
  environment: string;
  files: number;
  id: string;
  origin?: string;
}

export interface VersionList {
  items: Version[] | null;
  next?: string;
}
