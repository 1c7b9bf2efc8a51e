package puppet

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/rate"
)

// Config is what the handler needs. Ports and stores must be set; zero numbers
// stand for their defaults.
type Config struct {
	Checkin      Checkin
	Places       Places
	Environments Environments
	Trees        Trees
	Versions     Versions
	Blobs        cas.Store
	Reports      inventory.ReportStore
	Bucket       filebucket.Store

	// Backups are the rules of the filebucket as of now; nil: nodes read their own, without a quota.
	Backups func() BackupRules

	// Roles adds what the roles of a certificate allow; nil: certificates have none.
	Roles func(context.Context, fleet.Actor) (fleet.Actor, error)

	// PuppetVersion is the version that agents are told (X-Puppet-Version), empty while it is not known; they
	// send JSON reports from 5.0.0 and sync translations from 5.3.4.
	PuppetVersion func() string
	// CompilerName goes to agents with each catalog; empty: not sent.
	CompilerName string

	// How often a node may send facts, with a request for its catalog or without, and reports; nil: as it likes.
	FactsRate, ReportsRate *rate.Rule

	MaxFactsBytes  int64 // default 16 MiB
	MaxReportBytes int64 // default 64 MiB
	MaxBackupBytes int64 // default 1 GiB

	// BodyTimeout bounds how long a facts or report body may take to arrive, and
	// how long any one piece of a streamed body may; default 2 minutes.
	BodyTimeout time.Duration
	Limits      Limits

	Log *slog.Logger
	Now func() time.Time // default time.Now
}

// Limits bounds each class of work apart. A request waits for a place in its
// class for at most Wait, and only if not too many wait already; then it is
// answered 503 with a Retry-After spread over RetryMin to RetryMax.
type Limits struct {
	Catalogs Limit // catalogs, nodes and facts; default 256 at work, 4096 waiting
	Files    Limit // metadata, content, looking at backups; default 256 at work, 4096 waiting
	Uploads  Limit // backups on their way; default 64 at work, 1024 waiting
	Reports  Limit // default 64 at work, 1024 waiting

	// LargeBytes is what bodies of facts and catalog requests may take together
	// beyond each one's first MiB, and reports once more; default 256 MiB, or the
	// largest that is allowed if that is more.
	LargeBytes int64

	Wait     time.Duration // default 10 s
	RetryMin time.Duration // default 5 s
	RetryMax time.Duration // default 30 s
}

// Limit is how many requests of a class are worked on, and how many may wait.
type Limit struct {
	Active  int
	Waiting int
}

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// New returns the handler for everything under /puppet/v3/.
func New(config Config) http.Handler {
	config.setDefaults()
	wait := config.Limits
	s := &server{
		Config:   config,
		catalogs: newGate("catalogs", wait.Catalogs, wait),
		files:    newGate("files", wait.Files, wait),
		reports:  newGate("reports", wait.Reports, wait),
		reading:  make(chan struct{}, readAtOnce*runtime.GOMAXPROCS(0)),
	}
	s.routes = s.table()
	return s
}

// server is the handler.
type server struct {
	Config
	routes   map[string]route
	catalogs *gate
	files    *gate
	reports  *gate
	reading  chan struct{} // one for each catalog request whose facts are read and stored
}

func (c *Config) setDefaults() {
	orElse(&c.MaxFactsBytes, 16*mebibyte)
	orElse(&c.MaxReportBytes, 64*mebibyte)
	orElse(&c.MaxBackupBytes, gibibyte)
	orElse(&c.BodyTimeout, 2*time.Minute)
	orElse(&c.Limits.Uploads, Limit{Active: 64, Waiting: 1024})
	orElse(&c.Limits.Catalogs, Limit{Active: 256, Waiting: 4096})
	orElse(&c.Limits.Files, Limit{Active: 256, Waiting: 4096})
	orElse(&c.Limits.Reports, Limit{Active: 64, Waiting: 1024})
	orElse(&c.Limits.LargeBytes, max(256*mebibyte, c.MaxReportBytes, CatalogRequestBytes(c.MaxFactsBytes)))
	orElse(&c.Limits.Wait, 10*time.Second)
	orElse(&c.Limits.RetryMin, 5*time.Second)
	orElse(&c.Limits.RetryMax, 30*time.Second)
	orElse(&c.Log, slog.New(slog.DiscardHandler))
	if c.Backups == nil {
		c.Backups = func() BackupRules { return BackupRules{} }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

// orElse gives a setting that was left out its default.
func orElse[T comparable](setting *T, fallback T) {
	var zero T
	if *setting == zero {
		*setting = fallback
	}
}
