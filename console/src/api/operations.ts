// Written by `make generate` from the operations in api/; do not edit.
import type * as T from './types';

/** Requests and answers by the name of the operation; of a stream, the answer is one event. */
export interface Operations {
  "certificate.list": { request: { state?: string }; response: T.CertificateList };
  "certificate.show": { request: { name: string }; response: T.Certificate };
  "certificate.sign": { request: { name: string }; response: T.Certificate };
  "certificate.revoke": { request: { name: string }; response: void };
  "certificate.clean": { request: { name: string }; response: void };
  "request.clean": { request: { from?: string }; response: T.RequestCleanResponse };
  "server_certificate.rotate": { request: Record<never, never>; response: T.Certificate };
  "join_token.create": { request: Record<never, never> & T.JoinTokenRequest; response: T.JoinToken };
  "environment.list": { request: Record<never, never>; response: T.VersionList };
  "environment.delete": { request: { environment: string }; response: void };
  "version.list": { request: { environment: string }; response: T.VersionList };
  "environment.status": { request: { environment: string }; response: T.CodeStatus };
  "version.deploy": { request: { environment: string } & T.DeployRequest; response: T.Deployed };
  "engine.list": { request: Record<never, never>; response: T.EngineList };
  "blob.missing": { request: Record<never, never> & T.BlobMissingRequest; response: T.BlobMissingResponse };
  "blob.upload": { request: Record<never, never>; response: T.BlobUploadResponse };
  "source.list": { request: Record<never, never>; response: T.CodeSourceList };
  "source.show": { request: { name: string }; response: T.CodeSourceDetail };
  "source.add": { request: { name: string } & T.SourceAddRequest; response: T.CodeSource };
  "source.remove": { request: { name: string }; response: void };
  "source.sync": { request: { name: string } & T.SourceSyncRequest; response: T.SourceSynced };
  "source.deploy": { request: Record<never, never> & T.SourceDeployRequest; response: T.CodeBranchList };
  "node.list": { request: { where?: string; group?: string; environment?: string; status?: string; connected?: string; state?: string; order?: string; delivery?: boolean; after?: string; limit?: number }; response: T.NodeList };
  "node.summary": { request: { where?: string; group?: string; environment?: string; status?: string; connected?: string; state?: string }; response: T.NodeCounts };
  "node.show": { request: { name: string }; response: T.Node };
  "node.why": { request: { name: string }; response: T.NodeReasons };
  "node.facts": { request: { name: string }; response: T.Facts };
  "node.deactivate": { request: { name: string }; response: void };
  "node.purge": { request: { name: string }; response: void };
  "node.ping": { request: Record<never, never> & T.NodePingRequest; response: T.PongList };
  "node.catalog": { request: { name: string }; response: T.Catalog };
  "node.inputs": { request: { name: string }; response: T.CatalogInputs };
  "node.lookup": { request: { name: string } & T.NodeLookupRequest; response: T.LookedUp };
  "catalog.diff": { request: { name: string } & T.CatalogDiffRequest; response: T.CatalogDifference };
  "group.list": { request: Record<never, never>; response: T.GroupList };
  "group.show": { request: { group: string }; response: T.Group };
  "group.create": { request: Record<never, never> & T.GroupCreateRequest; response: T.Group };
  "group.edit": { request: { group: string } & T.GroupEditRequest; response: T.Group };
  "group.delete": { request: { group: string; revision?: number }; response: void };
  "group.nodes": { request: { group: string; after?: string; limit?: number }; response: T.GroupNodeList };
  "group.apply": { request: Record<never, never> & T.GroupApplyRequest; response: T.GroupApplyResponse };
  "group.explain": { request: { name: string }; response: T.GroupExplanation };
  "report.list": { request: { name?: string; status?: string; after?: string; limit?: number }; response: T.ReportList };
  "report.show": { request: { id: string }; response: T.Report };
  "event.stream": { request: { after?: string; since?: string; node?: string; where?: string; job?: string; environment?: string; kind?: string; status?: string; type?: string }; response: T.Event };
  "event.list": { request: { after?: string; limit?: number; since?: string; node?: string; where?: string; job?: string; environment?: string; kind?: string; status?: string; type?: string }; response: T.EventList };
  "task.list": { request: { environment: string }; response: T.TaskList };
  "task.show": { request: { environment: string; task: string }; response: T.Task };
  "action.list": { request: { node?: string; problems?: boolean }; response: T.ActionModuleList };
  "action.show": { request: { module: string }; response: T.ActionModule };
  "resource.variants": { request: { type: string; title?: string; where?: string }; response: T.ResourceComparisonList };
  "query.run": { request: Record<never, never> & T.QueryRequest; response: T.QueryAnswer };
  "catalog.release": { request: Record<never, never> & T.CatalogReleaseRequest; response: T.CatalogReleased };
  "node.delivery": { request: { name: string }; response: T.Delivery };
  "node.mode": { request: { name: string } & T.NodeModeRequest; response: T.ModeSwitched };
  "node.pin": { request: { name: string } & T.NodePinRequest; response: void };
  "node.unpin": { request: { name: string }; response: void };
  "group.mode": { request: { group: string } & T.GroupModeRequest; response: T.ModeSwitched };
  "mode.list": { request: Record<never, never>; response: T.ModeSetList };
  "catalog.losses": { request: { environment?: string; version?: string; warned?: boolean }; response: T.CatalogLossList };
  "node.let": { request: { name: string }; response: T.CatalogLet };
  "catalog.let": { request: Record<never, never> & T.CatalogLetRequest; response: T.CatalogLet };
  "compile.queue": { request: Record<never, never>; response: T.CompileQueueStatus };
  "compile.list": { request: { node?: string; environment?: string; state?: string; ids?: string; after?: string; limit?: number }; response: T.CompilationList };
  "compile.show": { request: { compilation: string }; response: T.CompilationRecord };
  "compile.now": { request: Record<never, never> & T.CompileNowRequest; response: T.CompileNowAnswer };
  "compile.verify": { request: Record<never, never> & T.CompileVerifyRequest; response: T.Verification };
  "compile.sample": { request: { environment?: string; sample?: number }; response: T.StringList };
  "compile.verified": { request: { node?: string; environment?: string; version?: string; outcome?: string; after?: string; limit?: number }; response: T.VerificationList };
  "compile.pause": { request: Record<never, never> & T.CompilePauseRequest; response: void };
  "compile.resume": { request: Record<never, never> & T.CompileResumeRequest; response: void };
  "job.puppet": { request: Record<never, never> & T.JobPuppetRequest; response: T.JobStarted };
  "job.task": { request: Record<never, never> & T.JobTaskRequest; response: T.JobStarted };
  "job.command": { request: Record<never, never> & T.JobCommandRequest; response: T.JobStarted };
  "job.script": { request: Record<never, never> & T.JobScriptRequest; response: T.JobStarted };
  "job.file": { request: Record<never, never> & T.JobFileRequest; response: T.JobStarted };
  "job.upload": { request: Record<never, never>; response: T.JobUploaded };
  "job.list": { request: { state?: string; kind?: string; actor?: string; node?: string; task?: string; after?: string; limit?: number }; response: T.JobList };
  "job.show": { request: { job: string }; response: T.Job };
  "job.runs": { request: { job: string; state?: string; node?: string; after?: string; limit?: number }; response: T.JobRunList };
  "job.output": { request: { job: string; node?: string; after?: string; limit?: number }; response: T.JobLineList };
  "job.events": { request: { job: string; after?: string }; response: T.JobEvent };
  "job.stop": { request: { job: string } & T.JobStopRequest; response: T.Job };
  "job.rerun": { request: { job: string } & T.JobRerunRequest; response: T.JobStarted };
  "action.ask": { request: { module: string; action: string } & T.ActionAskRequest; response: T.ActionEvent };
  "job.action": { request: Record<never, never> & T.JobActionRequest; response: T.JobStarted };
  "action.calls": { request: { actor?: string; module?: string; after?: string; limit?: number }; response: T.ActionCallList };
  "action.call": { request: { call: string }; response: T.ActionCall };
  "node.match": { request: Record<never, never> & T.NodeMatchRequest; response: T.NodeMatchedList };
  "app.list": { request: { app?: string; environment?: string }; response: T.AppList };
  "app.graph": { request: { app?: string }; response: T.NodeGraph };
  "preview.create": { request: { environment: string } & T.PreviewCreateRequest; response: T.Preview };
  "preview.list": { request: { environment?: string; state?: string; after?: string; limit?: number }; response: T.PreviewList };
  "preview.show": { request: { preview: string; after?: string; limit?: number }; response: T.PreviewReport };
  "preview.events": { request: { preview: string; after?: string }; response: T.PreviewEvent };
  "preview.nodes": { request: { preview: string; state?: string; change?: string; after?: string; limit?: number }; response: T.PreviewNodeList };
  "preview.node": { request: { preview: string; name: string }; response: T.CatalogDifference };
  "preview.warnings": { request: { preview: string }; response: T.PreviewWarned };
  "preview.say": { request: { preview: string } & T.PreviewSayRequest; response: T.PreviewRemarkList };
  "preview.cancel": { request: { preview: string }; response: T.Preview };
  "release.create": { request: Record<never, never> & T.ReleaseCreateRequest; response: T.ReleaseReport };
  "release.rollback": { request: Record<never, never> & T.RollbackRequest; response: T.ReleaseReport };
  "release.list": { request: { environment?: string; state?: string; after?: string; limit?: number }; response: T.ReleaseList };
  "release.show": { request: { release: string; behind?: number }; response: T.ReleaseReport };
  "release.targets": { request: { release: string; state?: string; wave?: number; since?: number; after?: string; limit?: number }; response: T.ReleaseTargetList };
  "release.pause": { request: { release: string } & T.ReleaseActRequest; response: T.Release };
  "release.resume": { request: { release: string } & T.ReleaseResumeRequest; response: T.Release };
  "release.promote": { request: { release: string }; response: T.Release };
  "release.abort": { request: { release: string } & T.ReleaseAbortRequest; response: T.Release };
  "release.approve": { request: { release: string } & T.ReleaseActRequest; response: T.Release };
  "release.refresh": { request: { release: string }; response: T.ReleaseRefreshed };
  "noise.list": { request: Record<never, never>; response: T.NoiseRuleList };
  "noise.set": { request: { rule: string } & T.NoiseSetRequest; response: T.NoiseRule };
  "noise.remove": { request: { rule: string }; response: T.NoiseRule };
  "noise.history": { request: { rule: string }; response: T.NoiseRuleList };
  "noise.suggest": { request: { environment: string; least?: number }; response: T.NoiseSuggestionList };
  "policy.list": { request: Record<never, never>; response: T.PolicyList };
  "policy.show": { request: { policy: string }; response: T.Policy };
  "policy.set": { request: { policy: string } & T.PolicySetRequest; response: T.Policy };
  "policy.remove": { request: { policy: string }; response: T.Policy };
  "policy.history": { request: { policy: string }; response: T.PolicyList };
  "policy.test": { request: { preview: string } & T.PolicyTestRequest; response: T.PolicyVerdict };
  "freeze.list": { request: Record<never, never>; response: T.FreezeList };
  "freeze.set": { request: { freeze: string } & T.FreezeSetRequest; response: T.Freeze };
  "freeze.remove": { request: { freeze: string }; response: T.Freeze };
  "freeze.history": { request: { freeze: string }; response: T.FreezeList };
  "session.open": { request: Record<never, never> & T.LoginRequest; response: T.IssuedToken };
  "session.link": { request: Record<never, never>; response: T.LoginLink };
  "session.show": { request: Record<never, never>; response: T.Session };
  "session.close": { request: Record<never, never>; response: void };
  "token.list": { request: { user: string; after?: string; limit?: number }; response: T.AccessTokenList };
  "token.create": { request: Record<never, never> & T.TokenCreateRequest; response: T.IssuedToken };
  "token.revoke": { request: { user: string; token: string }; response: void };
  "token.revoke_all": { request: { user: string }; response: T.RevokedTokens };
  "user.list": { request: { after?: string; limit?: number }; response: T.UserList };
  "user.show": { request: { user: string }; response: T.User };
  "user.create": { request: Record<never, never> & T.UserCreateRequest; response: T.User };
  "user.edit": { request: { user: string } & T.UserEditRequest; response: T.User };
  "user.delete": { request: { user: string }; response: void };
  "user.password": { request: { user: string } & T.PasswordRequest; response: void };
  "role.list": { request: Record<never, never>; response: T.RoleList };
  "role.show": { request: { role: string }; response: T.Role };
  "role.create": { request: Record<never, never> & T.RoleCreateRequest; response: T.Role };
  "role.edit": { request: { role: string } & T.RoleEditRequest; response: T.Role };
  "role.delete": { request: { role: string }; response: void };
  "audit.list": { request: { actor?: string; operation?: string; since?: string; until?: string; outcome?: string; after?: string; limit?: number }; response: T.AuditEntryList };
  "audit.chain": { request: { after?: number; since?: string; limit?: number }; response: T.AuditChainPage };
  "audit.verify": { request: { known?: string }; response: T.AuditVerification };
  "audit.sign": { request: Record<never, never>; response: T.AuditHead };
  "server.usage": { request: Record<never, never>; response: T.Usage };
  "version.show": { request: Record<never, never>; response: T.Build };
  "api.describe": { request: Record<never, never>; response: unknown };
}

export const prefix = '/api/v1';

/** Where each operation is, and what it needs. */
export const operations: Record<
  keyof Operations,
  { method: string; path: string; permission: string; act: boolean; query: string[] }
> = {
  "certificate.list": { method: "GET", path: "/certificates", permission: "certificate:read", act: false, query: ["state"] },
  "certificate.show": { method: "GET", path: "/certificates/{name}", permission: "certificate:read", act: false, query: [] },
  "certificate.sign": { method: "POST", path: "/certificates/{name}/sign", permission: "certificate:write", act: true, query: [] },
  "certificate.revoke": { method: "POST", path: "/certificates/{name}/revoke", permission: "certificate:write", act: true, query: [] },
  "certificate.clean": { method: "DELETE", path: "/certificates/{name}", permission: "certificate:write", act: true, query: [] },
  "request.clean": { method: "DELETE", path: "/certificate-requests", permission: "certificate:write", act: true, query: ["from"] },
  "server_certificate.rotate": { method: "POST", path: "/server-certificate/rotate", permission: "certificate:write", act: true, query: [] },
  "join_token.create": { method: "POST", path: "/join-tokens", permission: "certificate:write", act: true, query: [] },
  "environment.list": { method: "GET", path: "/environments", permission: "code:read", act: false, query: [] },
  "environment.delete": { method: "DELETE", path: "/environments/{environment}", permission: "code:deploy", act: true, query: [] },
  "version.list": { method: "GET", path: "/environments/{environment}/versions", permission: "code:read", act: false, query: [] },
  "environment.status": { method: "GET", path: "/environments/{environment}/status", permission: "code:read", act: false, query: [] },
  "version.deploy": { method: "POST", path: "/environments/{environment}/versions", permission: "code:deploy", act: true, query: [] },
  "engine.list": { method: "GET", path: "/engines", permission: "code:read", act: false, query: [] },
  "blob.missing": { method: "POST", path: "/blobs/missing", permission: "code:deploy", act: false, query: [] },
  "blob.upload": { method: "POST", path: "/blobs", permission: "code:deploy", act: true, query: [] },
  "source.list": { method: "GET", path: "/sources", permission: "code:read", act: false, query: [] },
  "source.show": { method: "GET", path: "/sources/{name}", permission: "code:read", act: false, query: [] },
  "source.add": { method: "PUT", path: "/sources/{name}", permission: "source:write", act: true, query: [] },
  "source.remove": { method: "DELETE", path: "/sources/{name}", permission: "source:write", act: true, query: [] },
  "source.sync": { method: "POST", path: "/sources/{name}/sync", permission: "code:deploy", act: true, query: [] },
  "source.deploy": { method: "POST", path: "/deploys", permission: "code:deploy", act: true, query: [] },
  "node.list": { method: "GET", path: "/nodes", permission: "node:read", act: false, query: ["where", "group", "environment", "status", "connected", "state", "order", "delivery", "after", "limit"] },
  "node.summary": { method: "GET", path: "/node-summary", permission: "node:read", act: false, query: ["where", "group", "environment", "status", "connected", "state"] },
  "node.show": { method: "GET", path: "/nodes/{name}", permission: "node:read", act: false, query: [] },
  "node.why": { method: "GET", path: "/nodes/{name}/why", permission: "report:read", act: false, query: [] },
  "node.facts": { method: "GET", path: "/nodes/{name}/facts", permission: "node:read", act: false, query: [] },
  "node.deactivate": { method: "POST", path: "/nodes/{name}/deactivate", permission: "node:purge", act: true, query: [] },
  "node.purge": { method: "DELETE", path: "/nodes/{name}", permission: "node:purge", act: true, query: [] },
  "node.ping": { method: "POST", path: "/ping", permission: "node:read", act: false, query: [] },
  "node.catalog": { method: "GET", path: "/nodes/{name}/catalog", permission: "catalog:read", act: false, query: [] },
  "node.inputs": { method: "GET", path: "/nodes/{name}/inputs", permission: "catalog:read", act: false, query: [] },
  "node.lookup": { method: "POST", path: "/nodes/{name}/lookup", permission: "preview:create", act: false, query: [] },
  "catalog.diff": { method: "POST", path: "/nodes/{name}/catalog/diff", permission: "catalog:read", act: false, query: [] },
  "group.list": { method: "GET", path: "/groups", permission: "group:read", act: false, query: [] },
  "group.show": { method: "GET", path: "/groups/{group}", permission: "group:read", act: false, query: [] },
  "group.create": { method: "POST", path: "/groups", permission: "group:write", act: true, query: [] },
  "group.edit": { method: "PUT", path: "/groups/{group}", permission: "group:write", act: true, query: [] },
  "group.delete": { method: "DELETE", path: "/groups/{group}", permission: "group:write", act: true, query: ["revision"] },
  "group.nodes": { method: "GET", path: "/groups/{group}/nodes", permission: "group:read", act: false, query: ["after", "limit"] },
  "group.apply": { method: "POST", path: "/groups/apply", permission: "group:write", act: true, query: [] },
  "group.explain": { method: "GET", path: "/nodes/{name}/groups", permission: "group:read", act: false, query: [] },
  "report.list": { method: "GET", path: "/reports", permission: "report:read", act: false, query: ["name", "status", "after", "limit"] },
  "report.show": { method: "GET", path: "/reports/{id}", permission: "report:read", act: false, query: [] },
  "event.stream": { method: "GET", path: "/events", permission: "report:read", act: false, query: ["after", "since", "node", "where", "job", "environment", "kind", "status", "type"] },
  "event.list": { method: "GET", path: "/events/history", permission: "report:read", act: false, query: ["after", "limit", "since", "node", "where", "job", "environment", "kind", "status", "type"] },
  "task.list": { method: "GET", path: "/environments/{environment}/tasks", permission: "task:read", act: false, query: [] },
  "task.show": { method: "GET", path: "/environments/{environment}/tasks/{task}", permission: "task:read", act: false, query: [] },
  "action.list": { method: "GET", path: "/actions", permission: "node:read", act: false, query: ["node", "problems"] },
  "action.show": { method: "GET", path: "/actions/{module}", permission: "node:read", act: false, query: [] },
  "resource.variants": { method: "GET", path: "/resources/{type}/variants", permission: "catalog:read", act: false, query: ["title", "where"] },
  "query.run": { method: "POST", path: "/query", permission: "query:run", act: false, query: [] },
  "catalog.release": { method: "POST", path: "/catalogs/release", permission: "catalog:release", act: true, query: [] },
  "node.delivery": { method: "GET", path: "/nodes/{name}/delivery", permission: "catalog:read", act: false, query: [] },
  "node.mode": { method: "PUT", path: "/nodes/{name}/mode", permission: "catalog:release", act: true, query: [] },
  "node.pin": { method: "PUT", path: "/nodes/{name}/pin", permission: "catalog:release", act: true, query: [] },
  "node.unpin": { method: "DELETE", path: "/nodes/{name}/pin", permission: "catalog:release", act: true, query: [] },
  "group.mode": { method: "PUT", path: "/groups/{group}/mode", permission: "catalog:release", act: true, query: [] },
  "mode.list": { method: "GET", path: "/delivery-modes", permission: "catalog:read", act: false, query: [] },
  "catalog.losses": { method: "GET", path: "/catalogs/losses", permission: "catalog:read", act: false, query: ["environment", "version", "warned"] },
  "node.let": { method: "POST", path: "/nodes/{name}/catalog/let", permission: "catalog:release", act: true, query: [] },
  "catalog.let": { method: "POST", path: "/catalogs/let", permission: "catalog:release", act: true, query: [] },
  "compile.queue": { method: "GET", path: "/compile/queue", permission: "catalog:read", act: false, query: [] },
  "compile.list": { method: "GET", path: "/compilations", permission: "catalog:read", act: false, query: ["node", "environment", "state", "ids", "after", "limit"] },
  "compile.show": { method: "GET", path: "/compilations/{compilation}", permission: "catalog:read", act: false, query: [] },
  "compile.now": { method: "POST", path: "/compile/now", permission: "compile:run", act: true, query: [] },
  "compile.verify": { method: "POST", path: "/compile/verify", permission: "compile:run", act: true, query: [] },
  "compile.sample": { method: "GET", path: "/compile/sample", permission: "catalog:read", act: false, query: ["environment", "sample"] },
  "compile.verified": { method: "GET", path: "/compile/verifications", permission: "catalog:read", act: false, query: ["node", "environment", "version", "outcome", "after", "limit"] },
  "compile.pause": { method: "POST", path: "/compile/pause", permission: "compile:pause", act: true, query: [] },
  "compile.resume": { method: "POST", path: "/compile/resume", permission: "compile:pause", act: true, query: [] },
  "job.puppet": { method: "POST", path: "/jobs/puppet", permission: "puppet:run", act: true, query: [] },
  "job.task": { method: "POST", path: "/jobs/task", permission: "task:run", act: true, query: [] },
  "job.command": { method: "POST", path: "/jobs/command", permission: "command:run", act: true, query: [] },
  "job.script": { method: "POST", path: "/jobs/script", permission: "script:run", act: true, query: [] },
  "job.file": { method: "POST", path: "/jobs/file", permission: "file:send", act: true, query: [] },
  "job.upload": { method: "POST", path: "/job-files", permission: "file:send", act: true, query: [] },
  "job.list": { method: "GET", path: "/jobs", permission: "job:read", act: false, query: ["state", "kind", "actor", "node", "task", "after", "limit"] },
  "job.show": { method: "GET", path: "/jobs/{job}", permission: "job:read", act: false, query: [] },
  "job.runs": { method: "GET", path: "/jobs/{job}/runs", permission: "job:read", act: false, query: ["state", "node", "after", "limit"] },
  "job.output": { method: "GET", path: "/jobs/{job}/output", permission: "job:read", act: false, query: ["node", "after", "limit"] },
  "job.events": { method: "GET", path: "/jobs/{job}/events", permission: "job:read", act: false, query: ["after"] },
  "job.stop": { method: "POST", path: "/jobs/{job}/stop", permission: "job:stop", act: true, query: [] },
  "job.rerun": { method: "POST", path: "/jobs/{job}/rerun", permission: "job:read", act: true, query: [] },
  "action.ask": { method: "POST", path: "/actions/{module}/{action}/ask", permission: "action:ask", act: true, query: [] },
  "job.action": { method: "POST", path: "/jobs/action", permission: "action:run", act: true, query: [] },
  "action.calls": { method: "GET", path: "/calls", permission: "job:read", act: false, query: ["actor", "module", "after", "limit"] },
  "action.call": { method: "GET", path: "/calls/{call}", permission: "job:read", act: false, query: [] },
  "node.match": { method: "POST", path: "/match", permission: "node:read", act: false, query: [] },
  "app.list": { method: "GET", path: "/applications", permission: "node:read", act: false, query: ["app", "environment"] },
  "app.graph": { method: "GET", path: "/application-graph", permission: "node:read", act: false, query: ["app"] },
  "preview.create": { method: "POST", path: "/environments/{environment}/previews", permission: "preview:create", act: true, query: [] },
  "preview.list": { method: "GET", path: "/previews", permission: "preview:read", act: false, query: ["environment", "state", "after", "limit"] },
  "preview.show": { method: "GET", path: "/previews/{preview}", permission: "preview:read", act: false, query: ["after", "limit"] },
  "preview.events": { method: "GET", path: "/previews/{preview}/events", permission: "preview:read", act: false, query: ["after"] },
  "preview.nodes": { method: "GET", path: "/previews/{preview}/nodes", permission: "preview:read", act: false, query: ["state", "change", "after", "limit"] },
  "preview.node": { method: "GET", path: "/previews/{preview}/nodes/{name}", permission: "preview:read", act: false, query: [] },
  "preview.warnings": { method: "GET", path: "/previews/{preview}/warnings", permission: "preview:read", act: false, query: [] },
  "preview.say": { method: "POST", path: "/previews/{preview}/remarks", permission: "preview:create", act: true, query: [] },
  "preview.cancel": { method: "POST", path: "/previews/{preview}/cancel", permission: "preview:create", act: true, query: [] },
  "release.create": { method: "POST", path: "/releases", permission: "release:create", act: true, query: [] },
  "release.rollback": { method: "POST", path: "/rollbacks", permission: "release:create", act: true, query: [] },
  "release.list": { method: "GET", path: "/releases", permission: "release:read", act: false, query: ["environment", "state", "after", "limit"] },
  "release.show": { method: "GET", path: "/releases/{release}", permission: "release:read", act: false, query: ["behind"] },
  "release.targets": { method: "GET", path: "/releases/{release}/targets", permission: "release:read", act: false, query: ["state", "wave", "since", "after", "limit"] },
  "release.pause": { method: "POST", path: "/releases/{release}/pause", permission: "release:control", act: true, query: [] },
  "release.resume": { method: "POST", path: "/releases/{release}/resume", permission: "release:control", act: true, query: [] },
  "release.promote": { method: "POST", path: "/releases/{release}/promote", permission: "release:control", act: true, query: [] },
  "release.abort": { method: "POST", path: "/releases/{release}/abort", permission: "release:control", act: true, query: [] },
  "release.approve": { method: "POST", path: "/releases/{release}/approve", permission: "release:approve", act: true, query: [] },
  "release.refresh": { method: "POST", path: "/releases/{release}/refresh", permission: "release:create", act: true, query: [] },
  "noise.list": { method: "GET", path: "/noise", permission: "preview:read", act: false, query: [] },
  "noise.set": { method: "PUT", path: "/noise/{rule}", permission: "policy:write", act: true, query: [] },
  "noise.remove": { method: "DELETE", path: "/noise/{rule}", permission: "policy:write", act: true, query: [] },
  "noise.history": { method: "GET", path: "/noise/{rule}/history", permission: "preview:read", act: false, query: [] },
  "noise.suggest": { method: "GET", path: "/environments/{environment}/noise/suggestions", permission: "preview:read", act: false, query: ["least"] },
  "policy.list": { method: "GET", path: "/policies", permission: "policy:read", act: false, query: [] },
  "policy.show": { method: "GET", path: "/policies/{policy}", permission: "policy:read", act: false, query: [] },
  "policy.set": { method: "PUT", path: "/policies/{policy}", permission: "policy:write", act: true, query: [] },
  "policy.remove": { method: "DELETE", path: "/policies/{policy}", permission: "policy:write", act: true, query: [] },
  "policy.history": { method: "GET", path: "/policies/{policy}/history", permission: "policy:read", act: false, query: [] },
  "policy.test": { method: "POST", path: "/previews/{preview}/policies", permission: "policy:read", act: false, query: [] },
  "freeze.list": { method: "GET", path: "/freezes", permission: "policy:read", act: false, query: [] },
  "freeze.set": { method: "PUT", path: "/freezes/{freeze}", permission: "policy:write", act: true, query: [] },
  "freeze.remove": { method: "DELETE", path: "/freezes/{freeze}", permission: "policy:write", act: true, query: [] },
  "freeze.history": { method: "GET", path: "/freezes/{freeze}/history", permission: "policy:read", act: false, query: [] },
  "session.open": { method: "POST", path: "/session", permission: "open", act: true, query: [] },
  "session.link": { method: "POST", path: "/session/link", permission: "self", act: true, query: [] },
  "session.show": { method: "GET", path: "/session", permission: "self", act: false, query: [] },
  "session.close": { method: "DELETE", path: "/session", permission: "self", act: true, query: [] },
  "token.list": { method: "GET", path: "/users/{user}/tokens", permission: "self", act: false, query: ["after", "limit"] },
  "token.create": { method: "POST", path: "/tokens", permission: "self", act: true, query: [] },
  "token.revoke": { method: "DELETE", path: "/users/{user}/tokens/{token}", permission: "self", act: true, query: [] },
  "token.revoke_all": { method: "DELETE", path: "/users/{user}/tokens", permission: "self", act: true, query: [] },
  "user.list": { method: "GET", path: "/users", permission: "user:read", act: false, query: ["after", "limit"] },
  "user.show": { method: "GET", path: "/users/{user}", permission: "user:read", act: false, query: [] },
  "user.create": { method: "POST", path: "/users", permission: "user:write", act: true, query: [] },
  "user.edit": { method: "PUT", path: "/users/{user}", permission: "user:write", act: true, query: [] },
  "user.delete": { method: "DELETE", path: "/users/{user}", permission: "user:write", act: true, query: [] },
  "user.password": { method: "POST", path: "/users/{user}/password", permission: "self", act: true, query: [] },
  "role.list": { method: "GET", path: "/roles", permission: "role:read", act: false, query: [] },
  "role.show": { method: "GET", path: "/roles/{role}", permission: "role:read", act: false, query: [] },
  "role.create": { method: "POST", path: "/roles", permission: "role:write", act: true, query: [] },
  "role.edit": { method: "PUT", path: "/roles/{role}", permission: "role:write", act: true, query: [] },
  "role.delete": { method: "DELETE", path: "/roles/{role}", permission: "role:write", act: true, query: [] },
  "audit.list": { method: "GET", path: "/audit", permission: "audit:read", act: false, query: ["actor", "operation", "since", "until", "outcome", "after", "limit"] },
  "audit.chain": { method: "GET", path: "/audit/chain", permission: "audit:read", act: false, query: ["after", "since", "limit"] },
  "audit.verify": { method: "GET", path: "/audit/verification", permission: "audit:read", act: false, query: ["known"] },
  "audit.sign": { method: "POST", path: "/audit/heads", permission: "audit:read", act: true, query: [] },
  "server.usage": { method: "GET", path: "/usage", permission: "metrics:read", act: false, query: [] },
  "version.show": { method: "GET", path: "/version", permission: "self", act: false, query: [] },
  "api.describe": { method: "GET", path: "/openapi.json", permission: "self", act: false, query: [] },
};
