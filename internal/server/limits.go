package server

import (
	"strconv"
	"time"

	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
	"github.com/tutti-project/tutti/internal/rate"
)

// backupRules are the settings of the filebucket.
func (p *parts) backupRules() puppet.BackupRules {
	c := p.config.Load()
	return puppet.BackupRules{Open: c.FilebucketOpen, Quota: filebucket.Quota{Files: c.BackupFilesNode, Bytes: c.BackupBytesNode}}
}

func factsRate(c *Config) *rate.Rule {
	return perMinute(c.FactsPerMinute, "facts", "facts_per_minute")
}

func reportsRate(c *Config) *rate.Rule {
	return perMinute(c.ReportsPerMinute, "reports", "reports_per_minute")
}

func renewalRate(c *Config) *rate.Rule {
	times := strconv.Itoa(c.RenewalsPerDay)
	return rate.Per(24*time.Hour, c.RenewalsPerDay, "%s renews its certificate more than "+times+" times a day (setting renewals_per_day)")
}

func perMinute(times int, what, setting string) *rate.Rule {
	return rate.Per(time.Minute, times, "%s sends "+what+" more than "+strconv.Itoa(times)+" times a minute (setting "+setting+")")
}
