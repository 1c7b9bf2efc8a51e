package server

import (
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
	"github.com/tutti-project/tutti/internal/rate"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// current tells what the settings say now. Others ask it each time, because a reload replaces the settings.
type current struct {
	config *atomic.Pointer[settings.Config]
}

// backupRules are the settings of the filebucket.
func (s current) backupRules() puppet.BackupRules {
	c := s.config.Load()
	return puppet.BackupRules{Open: c.FilebucketOpen, Quota: filebucket.Quota{Files: c.BackupFilesNode, Bytes: c.BackupBytesNode}}
}

// brakeLimits is what the settings say of the brake; they were checked when they were read.
func (s current) brakeLimits() deliver.Limits {
	c := s.config.Load()
	hold, err := deliver.ParseFloor(c.CatalogHoldBelow)
	warn, err2 := deliver.ParseFloor(c.CatalogWarnBelow)
	if err != nil || err2 != nil {
		return deliver.Limits{Hold: deliver.Off, Warn: deliver.Off}
	}
	return deliver.Limits{Hold: hold, Warn: warn}
}

// isController tells whether a node may give orders to others.
func (s current) isController(name fleet.Certname) bool {
	return slices.Contains(s.config.Load().BrokerControllers, string(name))
}

// puppetDBClients lets the certificates that the setting puppetdb_clients names ask
// and send as to a PuppetDB.
func (s current) puppetDBClients(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor := fleet.ActorFrom(r.Context())
		if actor.Kind == fleet.NodeActor && slices.Contains(s.config.Load().PuppetDBClients, actor.Name) {
			actor.Grants = append(slices.Clone(actor.Grants),
				fleet.Grant{Permission: fleet.QueryRun}, fleet.Grant{Permission: fleet.InventoryWrite})
			r = r.WithContext(fleet.WithActor(r.Context(), actor))
		}
		next.ServeHTTP(w, r)
	})
}

func factsRate(c *settings.Config) *rate.Rule {
	return perMinute(c.FactsPerMinute, "facts", "facts_per_minute")
}

func reportsRate(c *settings.Config) *rate.Rule {
	return perMinute(c.ReportsPerMinute, "reports", "reports_per_minute")
}

func renewalRate(c *settings.Config) *rate.Rule {
	times := strconv.Itoa(c.RenewalsPerDay)
	return rate.Per(24*time.Hour, c.RenewalsPerDay, "%s renews its certificate more than "+times+" times a day (setting renewals_per_day)")
}

func perMinute(times int, what, setting string) *rate.Rule {
	return rate.Per(time.Minute, times, "%s sends "+what+" more than "+strconv.Itoa(times)+" times a minute (setting "+setting+")")
}
