package settings

import (
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/program/cell"
)

// Config is every setting of a server. One name serves three places: the key in
// the configuration file (ca_key_type), the environment (TUTTI_CA_KEY_TYPE) and
// the flag (--ca-key-type); the flag wins, then the environment, then the file.
// A setting marked reload follows SIGHUP; the others need a restart.
type Config struct {
	Data     string `koanf:"data" help:"directory that holds everything the server keeps (mode 0700)"`
	Listen   string `koanf:"listen" help:"address of the one listener that carries every protocol"`
	Database string `koanf:"database" help:"where records are kept: empty for SQLite in the data directory, or postgres://USER@HOST/NAME"`

	Cluster        bool     `koanf:"cluster" help:"this is one of several servers that use the same records: they are in PostgreSQL (database), and content in an S3 store (blobs)"`
	ClusterKeyFile string   `koanf:"cluster_key_file" help:"file with the key by which such servers share secrets in the records, 64 hexadecimal digits; empty: TUTTI_CLUSTER_KEY of the environment"`
	Roles          []string `koanf:"roles" help:"what this one of several servers does: some of api, broker, compiler, content, ca, scheduler; empty: everything"`

	Near            bool          `koanf:"near" help:"this one of several servers stands near its nodes and far from the database: while it cannot reach that, it gives out the catalogs that it keeps, and queues what nodes send"`
	NearQueueBytes  int64         `koanf:"near_queue_bytes" help:"most facts, reports and events, compressed, that such a server queues or sets aside, in bytes"`
	NearCatalogsFor time.Duration `koanf:"near_catalogs_for" help:"how long such a server gives out kept catalogs while it cannot reach the database"`

	Blobs            string        `koanf:"blobs" help:"where content is kept: empty or directory for the data directory, or s3://BUCKET/PREFIX"`
	BlobsEndpoint    string        `koanf:"blobs_endpoint" help:"URL of the S3 store; empty: Amazon's of blobs_region"`
	BlobsRegion      string        `koanf:"blobs_region" help:"region of the S3 store"`
	BlobsPathStyle   bool          `koanf:"blobs_path_style" help:"the bucket is in the path of URLs, as most stores want it; false: in the name of the host"`
	BlobsCA          string        `koanf:"blobs_ca" help:"file with certificates (PEM) that the S3 store is known by; empty: those that this machine trusts"`
	BlobsCredentials string        `koanf:"blobs_credentials" help:"file with aws_access_key_id and aws_secret_access_key, read again when it changes; empty: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment"`
	BlobsCacheBytes  int64         `koanf:"blobs_cache_bytes" help:"most content of an S3 store that is kept on this server's disk, in bytes"`
	BlobsTimeout     time.Duration `koanf:"blobs_timeout" help:"how long the S3 store may be silent"`

	NATSURL         string `koanf:"nats_url" help:"NATS that servers with the same records hear of each other by: nats://HOST:PORT or tls://HOST:PORT, several with commas between; empty: none"`
	NATSPrefix      string `koanf:"nats_prefix" help:"how all subjects of these servers begin in NATS; installations that share a NATS need one each"`
	NATSCredentials string `koanf:"nats_credentials" help:"file with a user of NATS, as nsc writes it or one line USER:PASSWORD; read for each connection; empty: none"`
	NATSTLSCA       string `koanf:"nats_tls_ca" help:"file with certificates (PEM) that NATS is known by; empty: those that this machine trusts"`
	NATSTLSCert     string `koanf:"nats_tls_cert" help:"file with the certificate (PEM) that this server shows NATS; empty: none"`
	NATSTLSKey      string `koanf:"nats_tls_key" help:"file with the key (PEM) of nats_tls_cert"`

	BrokerListen          string        `koanf:"broker_listen" help:"a second address for the same listener, for PCP clients that know only port 8142; empty: none"`
	OrchestratorListen    string        `koanf:"orchestrator_listen" help:"a further address for the same listener, for clients of Puppet Enterprise that know only the orchestrator's port 8143; empty: none"`
	RBACListen            string        `koanf:"rbac_listen" help:"a further address for the same listener, for clients of Puppet Enterprise that ask for tokens at port 4433; empty: none"`
	BrokerControllers     []string      `koanf:"broker_controllers" reload:"true" help:"certnames that may order agents over PCP and ask who is connected, besides administrators' certificates"`
	BrokerMaxConnections  int           `koanf:"broker_max_connections" help:"most PCP clients that are connected; 0: as many as max_connections allows"`
	BrokerConnectionsNode int           `koanf:"broker_connections_per_node" help:"most PCP connections of one certificate that is no controller's; 0: any"`
	BrokerMaxMessageBytes int64         `koanf:"broker_max_message_bytes" help:"largest PCP message, in bytes; agents limit what is in a message to 64 MiB: 64 KiB more leave room for what is around it"`
	BrokerQueueBytes      int64         `koanf:"broker_queue_bytes" help:"most that may wait for one PCP client before it is cut off, in bytes"`
	BrokerIdleTimeout     time.Duration `koanf:"broker_idle_timeout" help:"how long a PCP client may be silent; agents ping every 2 minutes"`

	ConsoleListen string `koanf:"console_listen" help:"address of the console, for browsers: it asks for no certificate; empty: it is not served"`
	ConsolePlain  bool   `koanf:"console_plain" help:"serve the console without TLS; on the loopback only, as behind a proxy of this machine"`
	ConsoleURL    string `koanf:"console_url" help:"how people reach the console, for links; empty: made of the server's name and console_listen"`

	DNSAltNames []string `koanf:"dns_alt_names" reload:"true" help:"further names of this server in its certificate"`

	CAKeyType                    string        `koanf:"ca_key_type" help:"key of a new CA: ecdsa-p256 or rsa-4096"`
	CAName                       string        `koanf:"ca_name" help:"common name of a new CA; empty: made from the host's name"`
	CertificateTTL               time.Duration `koanf:"certificate_ttl" help:"how long an issued certificate is good"`
	Autosign                     string        `koanf:"autosign" reload:"true" help:"which requests are signed at once: off, all, list (autosign_list), or the path of a policy executable"`
	AutosignList                 []string      `koanf:"autosign_list" reload:"true" help:"certnames and *.domain patterns that autosign=list signs"`
	AllowSubjectAltNames         bool          `koanf:"allow_subject_alt_names" help:"sign requests that carry subject alternative names"`
	AllowAuthorizationExtensions bool          `koanf:"allow_authorization_extensions" help:"sign requests that carry authorization extensions such as pp_cli_auth"`
	CRLLifetime                  time.Duration `koanf:"crl_lifetime" help:"how long a revocation list is good; at half of it a new one is made"`
	RequestTTL                   time.Duration `koanf:"request_ttl" help:"how long a certificate request waits to be signed; 0: for ever"`
	MaxRequests                  int           `koanf:"max_requests" help:"most requests that wait; then the oldest of the address with most goes"`
	MaxRequestsPerAddress        int           `koanf:"max_requests_per_address" help:"most requests of one address (IPv6: /64) that wait"`
	AllowRenewal                 bool          `koanf:"allow_renewal" help:"let nodes renew their own certificates"`
	TrustedExternalCommand       string        `koanf:"trusted_external_command" reload:"true" help:"program that prints $trusted['external'] for a certname as JSON, or a directory of such programs"`

	ExternalNodeClassifier string `koanf:"external_node_classifier" reload:"true" help:"program that prints a node's classes, parameters and environment as YAML; it decides instead of the groups"`

	TokenLifetime    time.Duration `koanf:"token_lifetime" reload:"true" help:"how long a token is good if its user asks for nothing else"`
	TokenMaxLifetime time.Duration `koanf:"token_max_lifetime" reload:"true" help:"how long a token may be good at most"`
	LoginFailures    int           `koanf:"login_failures" reload:"true" help:"failed logins in a row that lock a user"`
	LoginLockout     time.Duration `koanf:"login_lockout" reload:"true" help:"how long a user is locked at first; each further failure doubles it, up to an hour"`
	AuditRetention   time.Duration `koanf:"audit_retention" reload:"true" help:"how long the audit log is kept"`
	AuditReads       bool          `koanf:"audit_reads" reload:"true" help:"record questions in the audit log, too, and not only acts and refusals"`

	AdminTokenLifetime time.Duration `koanf:"admin_token_lifetime" reload:"true" help:"how long a new admin.token is good; 0: until it is revoked"`

	PuppetStrict          string `koanf:"puppet_strict" help:"Puppet's setting strict: off, warning or error; empty: its default"`
	PuppetStrictVariables string `koanf:"puppet_strict_variables" bare:"true" help:"Puppet's setting strict_variables, an unknown variable is a mistake: true or false; empty: its default"`
	PuppetHieraConfig     string `koanf:"puppet_hiera_config" help:"a global hiera.yaml, read at the start; what it reads makes catalogs volatile"`
	TrustedOIDMappingFile string `koanf:"trusted_oid_mapping_file" help:"Puppet's file of short names of certificate extensions, read at the start"`

	Engine             string        `koanf:"engine" help:"name of the Puppet installation that compiles what names none; empty: the first that is found"`
	Engines            []string      `koanf:"engines" help:"Puppet installations that can compile: NAME:RUBY, the path of the Ruby that has Puppet; besides those that are found"`
	EngineGems         []string      `koanf:"engine_gems" help:"directories of gems in which an engine's Puppet lies: NAME:PATH"`
	Ruby               string        `koanf:"ruby" help:"Ruby that has Puppet: the engine called ruby, and the default if engine names no other one"`
	CompileWorkers     int           `koanf:"compile_workers" help:"catalogs compiled at the same time; 0: one for each core"`
	CompileTimeout     time.Duration `koanf:"compile_timeout" help:"longest time of one compile"`
	CompileShare       string        `koanf:"compile_environment_share" help:"most workers of one environment while others wait; never all of several"`
	CompileSlice       time.Duration `koanf:"compile_time_slice" help:"how long a compile may run before it is stopped and put back for others"`
	CompileMemoryBytes int64         `koanf:"compile_memory_bytes" help:"most memory that one compile may add, in bytes"`
	CompileIsolation   string        `koanf:"compile_isolation" help:"cells for code: best-effort (what this machine has), strict (else refuse to start), or off"`
	CompileUser        string        `koanf:"compile_user" help:"user that code runs as, when the server is root; empty: tutti-compile, if there is one"`
	ProgramIsolation   string        `koanf:"program_isolation" help:"cells for programs of autosign, trusted data, classifier: best-effort, or off"`
	ProgramPaths       []string      `koanf:"program_paths" help:"what these may read and run besides: PATH, or autosign:, trusted:, classifier: before it"`
	ProgramNetwork     []string      `koanf:"program_network" help:"TCP ports that these may connect to: PORT, or autosign:, trusted:, classifier:, r10k: before it"`
	CompileRead        []string      `koanf:"compile_read" help:"what code may read besides: PATH for all environments, ENVIRONMENT:PATH for one"`
	CompileGems        []string      `koanf:"compile_gems" help:"directories of gems for code: PATH, or ENVIRONMENT:PATH"`
	CompileVariables   []string      `koanf:"compile_variables" help:"variables for code: NAME=VALUE, NAME as the server has it, or ENVIRONMENT: before that"`
	CompileNetwork     []string      `koanf:"compile_network" help:"TCP ports that code may connect to: PORT, or ENVIRONMENT:PORT; none: no network"`
	CompileJIT         bool          `koanf:"compile_jit" help:"use Ruby's just-in-time compiler where it has one: a quarter less CPU a catalog"`
	MaxLoad            float64       `koanf:"max_load" help:"load of the machine, for each core, above which one compile runs at a time, and none in the background; 0: no limit"`
	IdleLoad           float64       `koanf:"idle_load" help:"load of the machine, for each core, up to which it has time for background compiles: checks of catalogs that were used again, refreshes; 0: always"`
	ReuseCatalogs      bool          `koanf:"reuse_catalogs" help:"give a node its stored catalog while all that was read for it is as it was; false: compile every time"`
	VolatileTTL        time.Duration `koanf:"volatile_ttl" reload:"true" help:"how long a catalog is used again whose code reads what cannot be followed, such as the clock; 0: never"`
	ReuseCheck         int           `koanf:"reuse_check" reload:"true" help:"one in so many catalogs that are used again is compiled in the background and compared; 0: none"`
	VerifyShare        string        `koanf:"verify_share" reload:"true" help:"share of compilations that plain Puppet verifies, or off"`
	VerifyAfterDeploy  int           `koanf:"verify_after_deploy" reload:"true" help:"sets of classes whose catalog is verified after a deploy; 0: none"`
	DeliveryMode       string        `koanf:"delivery_mode" reload:"true" help:"how nodes get catalogs for which neither they nor a group say it: live (the newest one at once) or released (only what is released to them)"`
	CatalogHoldBelow   string        `koanf:"catalog_hold_below" reload:"true" help:"a catalog that keeps a smaller share of resources, or none, is held; or off"`
	CatalogWarnBelow   string        `koanf:"catalog_warn_below" reload:"true" help:"a catalog that keeps a smaller share is given with a warning; or off"`
	GenerationsKept    int           `koanf:"generations_kept" reload:"true" help:"how many catalogs that were released to a node are kept, to fetch and to go back to"`
	HintApply          string        `koanf:"hint_apply" reload:"true" help:"when a node applies a newer catalog that it is told of: scheduled (its next scheduled run) or now"`
	CompileAhead       bool          `koanf:"compile_ahead" reload:"true" help:"compile because something changed, before anybody asks: new code, a fact that was read, groups, exported resources; needs reuse_catalogs"`
	DeployCheck        bool          `koanf:"deploy_check" reload:"true" help:"check code before it is deployed, and refuse mistakes"`
	DeployCheckNodes   int           `koanf:"deploy_check_nodes" reload:"true" help:"most nodes that a deploy's check compiles for; 0: none"`
	CompileOnSign      bool          `koanf:"compile_on_sign" reload:"true" help:"compile a node's first catalog when its certificate is signed, if facts of it are known"`
	FollowExports      bool          `koanf:"follow_exports" reload:"true" help:"compile nodes ahead that would collect other exported resources, or get another answer to a query, than their catalogs did"`
	RefreshAfter       time.Duration `koanf:"refresh_after" reload:"true" help:"how old a catalog gets before it is compiled again in the background and compared, the oldest first; 0: any age"`
	CompilePatience    time.Duration `koanf:"compile_patience" help:"how long an agent waits on the line for its catalog before it is told when to come back"`

	JobTimeout      time.Duration `koanf:"job_timeout" help:"how long one node's run of a job may take, if the job says nothing else"`
	JobPollInterval time.Duration `koanf:"job_poll_interval" help:"how often a node is asked about a run that it has not finished"`
	JobReconnect    time.Duration `koanf:"job_reconnect" help:"how long after a start of the server jobs wait for nodes to connect again"`
	JobRetention    time.Duration `koanf:"job_retention" reload:"true" help:"how long jobs that have ended, with the output of their runs, and records of calls are kept"`

	ReleaseRetention time.Duration `koanf:"release_retention" reload:"true" help:"how long releases that have ended are kept; generations stay as generations_kept says"`
	PreviewRetention time.Duration `koanf:"preview_retention" reload:"true" help:"how long previews that have ended are kept, and code that was stored only to be previewed"`

	PuppetDBClients []string `koanf:"puppetdb_clients" reload:"true" help:"certnames that may ask and send below /pdb as to a PuppetDB: Puppet Servers, dashboards"`

	ReportRetention       time.Duration `koanf:"report_retention" reload:"true" help:"how long reports are kept"`
	ReportDetailRetention time.Duration `koanf:"report_detail_retention" reload:"true" help:"after how long reports are kept in short: status, counts and times, without log, resources and events; 0: never"`
	EventRetention        time.Duration `koanf:"event_retention" reload:"true" help:"how long the stream of what happens in Puppet runs is kept"`
	NodeTTL               time.Duration `koanf:"node_ttl" reload:"true" help:"how long a node may give no sign of life (facts, report) before it is expired: queries leave it out; 0: for ever"`
	NodePurgeTTL          time.Duration `koanf:"node_purge_ttl" reload:"true" help:"how long after a node was deactivated or expired it is forgotten with all its data; 0: never"`
	BackupRetention       time.Duration `koanf:"backup_retention" reload:"true" help:"how long backed-up files (filebucket) are kept"`
	FilebucketOpen        bool          `koanf:"filebucket_open" reload:"true" help:"let every node read what any node backed up, not only its own"`
	BackupFilesNode       int           `koanf:"backup_files_per_node" reload:"true" help:"most backed-up files that are kept of one node; 0: no limit"`
	BackupBytesNode       int64         `koanf:"backup_bytes_per_node" reload:"true" help:"most bytes of backed-up files that are kept of one node; 0: no limit"`
	FactsPerMinute        int           `koanf:"facts_per_minute" help:"how often a node may send facts, with a request for its catalog or without; 0: no limit"`
	ReportsPerMinute      int           `koanf:"reports_per_minute" help:"how often a node may send reports; 0: no limit"`
	RenewalsPerDay        int           `koanf:"renewals_per_day" help:"how often a node may renew its certificate; 0: no limit"`
	VersionRetention      time.Duration `koanf:"version_retention" reload:"true" help:"how long deployed versions are kept; the last 10 of each environment, and those that a node's newest catalog is of, stay longer"`
	MaxFactsBytes         int64         `koanf:"max_facts_bytes" help:"largest set of facts, in bytes"`
	FactsQueueBytes       int64         `koanf:"facts_queue_bytes" help:"most facts, compressed, that wait to be applied after a burst; beyond that nodes are told to come back; in bytes"`
	MaxReportBytes        int64         `koanf:"max_report_bytes" help:"largest report, in bytes"`
	MaxBackupBytes        int64         `koanf:"max_backup_bytes" help:"largest backed-up file, in bytes"`
	BodyBudgetBytes       int64         `koanf:"body_budget_bytes" help:"most memory for bodies of requests, in bytes; strangers have an eighth"`
	BodyTimeout           time.Duration `koanf:"body_timeout" help:"how long a request's body may take, besides a second for each 64 KiB"`
	HSTSMaxAge            time.Duration `koanf:"hsts_max_age" reload:"true" help:"how long browsers are to use nothing but TLS with this host; 0: they are not told"`

	MaxConnections           int      `koanf:"max_connections" help:"most open connections"`
	MaxConnectionsPerAddress int      `koanf:"max_connections_per_address" help:"most open connections from one address"`
	MaxAnonymousConnections  int      `koanf:"max_anonymous_connections" help:"most open connections without a client certificate"`
	MaxAnonymousPerAddress   int      `koanf:"max_anonymous_per_address" help:"most open connections without a client certificate from one address"`
	ConnectionLimitExempt    []string `koanf:"connection_limit_exempt" help:"addresses and networks without these limits, such as load balancers"`
	ProxyProtocolFrom        []string `koanf:"proxy_protocol_from" help:"addresses and networks of load balancers that begin each connection with a PROXY header, version 2: the client's address is in it; who comes from there without one is refused; empty: none"`

	Traces      string `koanf:"traces" help:"collector of OpenTelemetry traces that is told how long the steps of catalogs, jobs and releases took: http(s)://HOST:PORT/v1/traces; empty: none"`
	TracesShare string `koanf:"traces_share" help:"share of traces that are kept, the same ones on all servers"`

	ShutdownTimeout time.Duration `koanf:"shutdown_timeout" help:"how long open requests may go on after SIGTERM"`
	LogLevel        string        `koanf:"log_level" reload:"true" help:"debug, info, warn or error"`
	LogFormat       string        `koanf:"log_format" help:"text or json"`
	AccessLog       bool          `koanf:"access_log" reload:"true" help:"log every request"`
	GarbageInterval time.Duration `koanf:"garbage_interval" help:"how often content that nothing refers to is removed"`
	GarbageGrace    time.Duration `koanf:"garbage_grace" help:"how long unreferenced content is kept"`
}

// Default is a server's configuration when nothing is said.
func Default() Config {
	return Config{
		Data:                  api.DataDir,
		Listen:                ":8140",
		BlobsRegion:           "us-east-1",
		BlobsPathStyle:        true,
		BlobsCacheBytes:       10 << 30,
		BlobsTimeout:          10 * time.Second,
		NATSPrefix:            "tutti",
		BrokerConnectionsNode: 1,
		BrokerMaxMessageBytes: 64<<20 + 64<<10,
		BrokerQueueBytes:      16 << 20,
		BrokerIdleTimeout:     6 * time.Minute,
		CAKeyType:             "ecdsa-p256",
		CertificateTTL:        5 * 365 * 24 * time.Hour,
		Autosign:              "off",
		AllowRenewal:          true,
		CRLLifetime:           5 * 365 * 24 * time.Hour,
		RequestTTL:            30 * 24 * time.Hour,
		MaxRequests:           20_000,
		MaxRequestsPerAddress: 2_000,
		TokenLifetime:         8 * time.Hour,
		TokenMaxLifetime:      366 * 24 * time.Hour,
		AdminTokenLifetime:    24 * time.Hour,
		LoginFailures:         5,
		LoginLockout:          time.Minute,
		AuditRetention:        366 * 24 * time.Hour,
		CompileJIT:            true,
		CompileIsolation:      string(cell.BestEffort),
		ProgramIsolation:      string(cell.BestEffort),
		MaxLoad:               8,
		IdleLoad:              0.5,
		CompileTimeout:        5 * time.Minute,
		CompileShare:          "50%",
		CompileSlice:          20 * time.Second,
		CompileMemoryBytes:    1 << 30,
		CompilePatience:       5 * time.Second,
		ReuseCatalogs:         true,
		VolatileTTL:           10 * time.Minute,
		ReuseCheck:            100,
		VerifyShare:           "1%",
		VerifyAfterDeploy:     5,
		DeliveryMode:          string(deliver.Live),
		CatalogHoldBelow:      "0%",
		CatalogWarnBelow:      "50%",
		GenerationsKept:       10,
		HintApply:             string(deliver.Scheduled),
		CompileAhead:          true,
		DeployCheck:           true,
		DeployCheckNodes:      20,
		CompileOnSign:         true,
		FollowExports:         true,
		RefreshAfter:          24 * time.Hour,
		JobTimeout:            time.Hour,
		JobPollInterval:       time.Minute,
		JobReconnect:          time.Minute,
		JobRetention:          90 * 24 * time.Hour,
		PreviewRetention:      30 * 24 * time.Hour,
		ReleaseRetention:      180 * 24 * time.Hour,
		ReportRetention:       14 * 24 * time.Hour,
		EventRetention:        14 * 24 * time.Hour,
		NodeTTL:               7 * 24 * time.Hour,
		NodePurgeTTL:          14 * 24 * time.Hour,
		BackupRetention:       90 * 24 * time.Hour,
		BackupFilesNode:       20_000,
		BackupBytesNode:       10 << 30,
		FactsPerMinute:        120,
		ReportsPerMinute:      60,
		RenewalsPerDay:        10,
		VersionRetention:      90 * 24 * time.Hour,
		MaxFactsBytes:         16 << 20,
		FactsQueueBytes:       1 << 30,
		NearQueueBytes:        1 << 30,
		NearCatalogsFor:       24 * time.Hour,
		MaxReportBytes:        64 << 20,
		MaxBackupBytes:        1 << 30,
		BodyBudgetBytes:       512 << 20,
		BodyTimeout:           time.Minute,
		HSTSMaxAge:            365 * 24 * time.Hour,
		MaxConnections:        100_000,

		MaxConnectionsPerAddress: 4096,
		MaxAnonymousConnections:  4096,
		MaxAnonymousPerAddress:   256,
		ConnectionLimitExempt:    []string{"127.0.0.0/8", "::1/128"},

		ShutdownTimeout: 20 * time.Second,
		LogLevel:        "info",
		LogFormat:       "text",
		TracesShare:     "100%",
		AccessLog:       true,
		GarbageInterval: 6 * time.Hour,
		GarbageGrace:    24 * time.Hour,
	}
}
