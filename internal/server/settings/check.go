package settings

import (
	"net"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// Check returns an Invalid fault for the first setting that cannot be used. It
// looks at values only, not at what is on disk.
func (c Config) Check() error {
	if c.Data == "" {
		return Bad("data", "it is empty; name a directory")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return Bad("listen", "%q is not HOST:PORT or :PORT", c.Listen)
	}
	for name, address := range map[string]string{"broker_listen": c.BrokerListen, "orchestrator_listen": c.OrchestratorListen, "rbac_listen": c.RBACListen} {
		if _, _, err := net.SplitHostPort(address); err != nil && address != "" {
			return Bad(name, "%q is not HOST:PORT or :PORT", address)
		}
	}
	if err := c.checkConsole(); err != nil {
		return err
	}
	if c.Database != "" && !strings.HasPrefix(c.Database, "postgres://") && !strings.HasPrefix(c.Database, "postgresql://") {
		return Bad("database", "it must begin with postgres:// or be empty for SQLite")
	}
	if err := c.checkNATS(); err != nil {
		return err
	}
	if err := c.checkTraces(); err != nil {
		return err
	}
	if err := c.checkBlobs(); err != nil {
		return err
	}
	if err := c.checkCluster(); err != nil {
		return err
	}
	if err := oneOf("ca_key_type", c.CAKeyType, "ecdsa-p256", "rsa-4096"); err != nil {
		return err
	}
	if c.Autosign != "off" && c.Autosign != "all" && c.Autosign != "list" && !strings.HasPrefix(c.Autosign, "/") {
		return Bad("autosign", "%q is none of off, all, list, or the absolute path of an executable", c.Autosign)
	}
	if c.Autosign == "list" && len(c.AutosignList) == 0 {
		return Bad("autosign_list", "it is empty, but autosign=list needs it")
	}
	if c.TrustedExternalCommand != "" && !strings.HasPrefix(c.TrustedExternalCommand, "/") {
		return Bad("trusted_external_command", "%q is not the absolute path of an executable or of a directory of them", c.TrustedExternalCommand)
	}
	for key, path := range map[string]string{"puppet_hiera_config": c.PuppetHieraConfig, "trusted_oid_mapping_file": c.TrustedOIDMappingFile} {
		if path != "" && !strings.HasPrefix(path, "/") {
			return Bad(key, "%q is not the absolute path of a file", path)
		}
	}
	if _, err := c.EnginesWith(nil); err != nil {
		return err
	}
	if err := oneOf("puppet_strict", c.PuppetStrict, "", "off", "warning", "error"); err != nil {
		return err
	}
	if err := oneOf("puppet_strict_variables", c.PuppetStrictVariables, "", "true", "false"); err != nil {
		return err
	}
	if err := oneOf("delivery_mode", c.DeliveryMode, string(deliver.Live), string(deliver.Released)); err != nil {
		return err
	}
	for name, text := range map[string]string{"catalog_hold_below": c.CatalogHoldBelow, "catalog_warn_below": c.CatalogWarnBelow} {
		if _, err := deliver.ParseFloor(text); err != nil {
			return Bad(name, "%s", fault.Detail(err))
		}
	}
	if err := c.checkCells(); err != nil {
		return err
	}
	if err := oneOf("hint_apply", c.HintApply, string(deliver.Scheduled), string(deliver.AtOnce)); err != nil {
		return err
	}
	if _, err := c.VerifiedShare(); err != nil {
		return err
	}
	if _, err := c.EnvironmentShare(); err != nil {
		return err
	}
	if err := oneOf("log_level", c.LogLevel, "debug", "info", "warn", "error"); err != nil {
		return err
	}
	if err := oneOf("log_format", c.LogFormat, "text", "json"); err != nil {
		return err
	}
	for _, name := range c.PuppetDBClients {
		if _, err := fleet.ParseCertname(name); err != nil {
			return Bad("puppetdb_clients", "%s", fault.Detail(err))
		}
	}
	return c.checkNumbers()
}

func (c Config) checkNumbers() error {
	for key, value := range map[string]int64{
		"compile_memory_bytes": c.CompileMemoryBytes, "max_facts_bytes": c.MaxFactsBytes, "facts_queue_bytes": c.FactsQueueBytes,
		"near_queue_bytes":         c.NearQueueBytes,
		"max_report_bytes":         c.MaxReportBytes,
		"blobs_cache_bytes":        c.BlobsCacheBytes,
		"broker_max_message_bytes": c.BrokerMaxMessageBytes, "broker_queue_bytes": c.BrokerQueueBytes,
		"max_backup_bytes": c.MaxBackupBytes, "max_connections": int64(c.MaxConnections), "body_budget_bytes": c.BodyBudgetBytes,
		"max_connections_per_address": int64(c.MaxConnectionsPerAddress), "max_anonymous_connections": int64(c.MaxAnonymousConnections),
		"max_anonymous_per_address": int64(c.MaxAnonymousPerAddress),
		"login_failures":            int64(c.LoginFailures), "generations_kept": int64(c.GenerationsKept),
		"max_requests": int64(c.MaxRequests), "max_requests_per_address": int64(c.MaxRequestsPerAddress),
	} {
		if value <= 0 {
			return Bad(key, "it must be larger than zero")
		}
	}
	for key, value := range map[string]time.Duration{
		"certificate_ttl": c.CertificateTTL, "compile_timeout": c.CompileTimeout, "compile_time_slice": c.CompileSlice, "compile_patience": c.CompilePatience,
		"report_retention": c.ReportRetention, "backup_retention": c.BackupRetention, "version_retention": c.VersionRetention,
		"shutdown_timeout":    c.ShutdownTimeout,
		"broker_idle_timeout": c.BrokerIdleTimeout, "job_timeout": c.JobTimeout, "job_poll_interval": c.JobPollInterval,
		"job_reconnect": c.JobReconnect, "job_retention": c.JobRetention, "preview_retention": c.PreviewRetention,
		"release_retention": c.ReleaseRetention, "event_retention": c.EventRetention,
		"garbage_interval": c.GarbageInterval, "garbage_grace": c.GarbageGrace,
		"token_lifetime": c.TokenLifetime, "token_max_lifetime": c.TokenMaxLifetime, "login_lockout": c.LoginLockout, "audit_retention": c.AuditRetention,
		"body_timeout": c.BodyTimeout, "blobs_timeout": c.BlobsTimeout, "near_catalogs_for": c.NearCatalogsFor,
	} {
		if value < time.Millisecond { // a bare number is nanoseconds, which nobody means
			return Bad(key, "%s is too short; write a number with its unit, for example 90s, 5m or 24h", value)
		}
	}
	for key, value := range map[string]time.Duration{
		"request_ttl": c.RequestTTL, "node_ttl": c.NodeTTL, "node_purge_ttl": c.NodePurgeTTL,
		"volatile_ttl":  c.VolatileTTL,
		"refresh_after": c.RefreshAfter, "admin_token_lifetime": c.AdminTokenLifetime, "report_detail_retention": c.ReportDetailRetention,
		"hsts_max_age": c.HSTSMaxAge,
	} {
		if value != 0 && value < time.Millisecond {
			return Bad(key, "%s is too short; write a number with its unit, for example 168h, or 0 for never", value)
		}
	}
	if c.ReportDetailRetention >= c.ReportRetention {
		return Bad("report_detail_retention", "%s is no shorter than report_retention, %s: nothing would ever be kept in short; 0 says so",
			c.ReportDetailRetention, c.ReportRetention)
	}
	for key, value := range map[string]int64{
		"backup_files_per_node": int64(c.BackupFilesNode), "backup_bytes_per_node": c.BackupBytesNode, "facts_per_minute": int64(c.FactsPerMinute),
		"reports_per_minute": int64(c.ReportsPerMinute), "renewals_per_day": int64(c.RenewalsPerDay),
		"broker_connections_per_node": int64(c.BrokerConnectionsNode),
	} {
		if value < 0 {
			return Bad(key, "it must not be negative; 0 means no limit")
		}
	}
	if _, err := c.Exempt(); err != nil {
		return err
	}
	if _, err := c.Proxies(); err != nil {
		return err
	}
	switch {
	case c.BodyBudgetBytes < max(api.MaxBody, c.MaxFactsBytes, c.MaxReportBytes):
		return Bad("body_budget_bytes", "%d is less than one body may have: %d", c.BodyBudgetBytes, max(api.MaxBody, c.MaxFactsBytes, c.MaxReportBytes))
	case c.CRLLifetime < 24*time.Hour:
		return Bad("crl_lifetime", "%s is too short: nodes fetch the list once a day at most; give 24h or more", c.CRLLifetime)
	case c.JobTimeout > job.MaxTime:
		return Bad("job_timeout", "%s is more than %s", c.JobTimeout, job.MaxTime)
	case c.BrokerMaxConnections < 0:
		return Bad("broker_max_connections", "it must not be negative; 0 means no limit of its own")
	case c.TokenLifetime > c.TokenMaxLifetime:
		return Bad("token_lifetime", "%s is longer than token_max_lifetime, %s", c.TokenLifetime, c.TokenMaxLifetime)
	case c.CompileWorkers < 0:
		return Bad("compile_workers", "it must not be negative; 0 means one for each core")
	case c.DeployCheckNodes < 0:
		return Bad("deploy_check_nodes", "it must not be negative; 0 means that files are only read")
	case c.ReuseCheck < 0:
		return Bad("reuse_check", "it must not be negative; 0 means that no reused catalog is checked")
	case c.VerifyAfterDeploy < 0:
		return Bad("verify_after_deploy", "it must not be negative; 0 means that nothing is verified after a deploy")
	case c.MaxLoad < 0:
		return Bad("max_load", "it must not be negative; 0 means no limit")
	case c.IdleLoad < 0:
		return Bad("idle_load", "it must not be negative; 0 means that there is always time for background compiles")
	}
	return nil
}

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return Bad(key, "%q is none of %s", value, strings.Join(allowed, ", "))
}

// Bad is an Invalid fault that names the setting.
func Bad(key, format string, args ...any) error {
	return fault.New(fault.Invalid, "setting "+key+": "+format, args...)
}
