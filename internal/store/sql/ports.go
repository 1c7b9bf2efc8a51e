package sql

import (
	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/inventory/saved"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/memo"
	"github.com/tutti-project/tutti/internal/job/schedule"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/store/usage"
)

// Which part is which port.
var (
	_ appgraph.Store           = (*Catalogs)(nil)
	_ broker.AttendanceStore   = (*Attendances)(nil)
	_ broker.Roster            = (*Presence)(nil)
	_ cas.Marks                = (*BlobMarks)(nil)
	_ catalogue.Store          = (*Catalogue)(nil)
	_ classify.Store           = (*Groups)(nil)
	_ code.Store               = (*Versions)(nil)
	_ codecheck.Store          = (*CodeChecks)(nil)
	_ compile.Board            = (*Queue)(nil)
	_ compile.Breakages        = (*Queue)(nil)
	_ compile.History          = (*Queue)(nil)
	_ compile.Pauses           = (*Queue)(nil)
	_ compile.Queue            = (*Queue)(nil)
	_ compile.Readings         = (*Reusables)(nil)
	_ compile.Reusables        = (*Reusables)(nil)
	_ compile.Turns            = (*Queue)(nil)
	_ compile.Verifications    = (*Verifications)(nil)
	_ compile.Wants            = (*Wants)(nil)
	_ deliver.Store            = (*Deliveries)(nil)
	_ event.Store              = (*Events)(nil)
	_ factqueue.Store          = (*FactQueue)(nil)
	_ factqueue.Watch          = (*Reusables)(nil)
	_ filebucket.Store         = (*Backups)(nil)
	_ inventory.Asker          = (*Queries)(nil)
	_ inventory.CatalogStore   = (*Catalogs)(nil)
	_ inventory.EnrolmentStore = (*Nodes)(nil)
	_ inventory.FactStore      = (*Facts)(nil)
	_ inventory.InputStore     = (*Catalogs)(nil)
	_ inventory.NodeStore      = (*Nodes)(nil)
	_ inventory.PackageStore   = (*Facts)(nil)
	_ inventory.ReportStore    = (*Reports)(nil)
	_ inventory.RunStore       = (*Reports)(nil)
	_ job.Store                = (*Jobs)(nil)
	_ lease.Roll               = (*Leases)(nil)
	_ lease.Store              = (*Leases)(nil)
	_ memo.Store               = (*Memos)(nil)
	_ pki.Store                = (*Authority)(nil)
	_ policy.Store             = (*Policies)(nil)
	_ preview.Store            = (*Previews)(nil)
	_ rbac.AuditStore          = (*Audit)(nil)
	_ rbac.Store               = (*Access)(nil)
	_ release.Store            = (*Releases)(nil)
	_ saved.Store              = (*SavedQueries)(nil)
	_ schedule.Store           = (*Schedules)(nil)
	_ source.Store             = (*CodeSources)(nil)
	_ usage.Store              = (*Usage)(nil)
)
