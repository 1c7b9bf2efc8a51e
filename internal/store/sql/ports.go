package sql

import (
	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/rbac"
)

// The ports that a Store satisfies.
var (
	_ inventory.FactStore    = (*Store)(nil)
	_ inventory.CatalogStore = (*Store)(nil)
	_ inventory.NodeStore    = (*Store)(nil)
	_ inventory.ReportStore  = (*Store)(nil)
	_ compile.Queue          = (*Store)(nil)
	_ compile.History        = (*Store)(nil)
	_ code.Store             = (*Store)(nil)
	_ pki.Store              = (*Store)(nil)
	_ filebucket.Store       = (*Store)(nil)
	_ rbac.Store             = (*Store)(nil)
	_ rbac.AuditStore        = (*Store)(nil)
	_ job.Store              = (*Store)(nil)
	_ event.Store            = (*Store)(nil)
)
