package server

import "github.com/tutti-project/tutti/internal/store/sql"

// commands is puppetdb.Store: what commands bring goes into four parts of the records.
type commands struct {
	*sql.Facts
	*sql.Catalogs
	*sql.Nodes
	*sql.Reports
}

// checkedFleet is codecheck.Fleet.
type checkedFleet struct {
	*sql.Wants
	*sql.Queue
	*sql.Reusables
	*sql.CodeChecks
}

// wantsAndStandings is checkin.Queue.
type wantsAndStandings struct {
	*sql.Queue
	*sql.Wants
}

// wantsAndReadings is preview.Queue.
type wantsAndReadings struct {
	*sql.Queue
	*sql.Reusables
}

// givenAndReported is release.Given.
type givenAndReported struct {
	*sql.Deliveries
	*sql.Releases
	*sql.Reports
}
