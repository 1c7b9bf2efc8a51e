package sql

import (
	"context"
	"math/big"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/action/catalogue/cataloguetest"
	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/action/history/historytest"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/broker/brokertest"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/cas/filebucket/filebuckettest"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/code/source/sourcetest"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/deliver/delivertest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/inventory/inventorytest"
	"github.com/tutti-project/tutti/internal/inventory/saved"
	"github.com/tutti-project/tutti/internal/inventory/saved/savedtest"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
	"github.com/tutti-project/tutti/internal/job/memo"
	"github.com/tutti-project/tutti/internal/job/memo/memotest"
	"github.com/tutti-project/tutti/internal/job/schedule"
	"github.com/tutti-project/tutti/internal/job/schedule/scheduletest"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/policy/policytest"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/preview/previewtest"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/release/releasetest"
)

func TestInventory(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		inventorytest.RunStore(t, func(t *testing.T) inventorytest.Store {
			t.Helper()
			s := open(t)
			return struct {
				inventory.FactStore
				inventory.PackageStore
				inventory.CatalogStore
				inventory.InputStore
				inventory.NodeStore
				inventory.ReportStore
				inventory.RunStore
			}{s.Facts, s.Facts, s.Catalogs, s.Catalogs, s.Nodes, s.Reports, s.Reports}
		})
	})
}

// nodesPart is Nodes under a name that is none of its methods'.
type nodesPart = Nodes

// enrolments are nodes and their certificates in one store.
type enrolments struct {
	*nodesPart
	inventory.FactStore
	last int64
}

func (e *enrolments) Issue(t *testing.T, c inventorytest.Card) {
	t.Helper()
	e.last++
	row := pki.Certificate{
		Certname: c.Certname, Serial: big.NewInt(e.last), IssuedAt: c.At, NotBefore: c.At, NotAfter: c.Ends, Current: !c.Server && !c.Former, Server: c.Server,
	}
	if c.Revoked {
		row.RevokedAt = c.At
	}
	err := e.write(t.Context(), func(ctx context.Context, q querier) error {
		return (&Authority{base: e.base}).issue(ctx, q, []pki.Certificate{row})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEnrolments(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		inventorytest.RunEnrolments(t, func(t *testing.T) inventorytest.EnrolmentStore {
			t.Helper()
			s := open(t)
			return &enrolments{nodesPart: s.Nodes, FactStore: s.Facts}
		})
	})
}

func TestRoster(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		brokertest.RunRoster(t, func(t *testing.T) broker.Roster {
			t.Helper()
			return open(t).Presence
		})
	})
}

func TestAttendances(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		brokertest.RunAttendances(t, func(t *testing.T) broker.AttendanceStore {
			t.Helper()
			return open(t).Attendances
		})
	})
}

func TestBlobMarks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		castest.RunMarks(t, func(t *testing.T) cas.Marks {
			t.Helper()
			return open(t).BlobMarks
		})
	})
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		cataloguetest.RunStore(t, func(t *testing.T) catalogue.Store {
			t.Helper()
			return open(t).Catalogue
		})
	})
}

func TestCalls(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		historytest.RunStore(t, func(t *testing.T) history.Store {
			t.Helper()
			return open(t).Calls
		})
		t.Run("there are never more than so many", func(t *testing.T) {
			t.Parallel()
			s := open(t)
			for _, module := range []string{"first", "second", "third"} {
				_, err := s.Calls.SaveCall(t.Context(), history.Call{Module: module})
				check(t, err)
			}
			check(t, s.write(t.Context(), func(ctx context.Context, q querier) error { // as if so many had come between the first and the second
				_, err := q.exec(ctx, "UPDATE calls SET id = id - $1 WHERE module = 'first'", history.MaxCalls)
				return err
			}))
			_, err := s.Calls.SaveCall(t.Context(), history.Call{Module: "fourth"})
			check(t, err)
			calls, err := s.Calls.Calls(t.Context(), history.Page{Limit: 9})
			if err != nil || len(calls) != 3 || calls[2].Module != "second" {
				t.Errorf("%+v, %v", calls, err)
			}
		})
	})
}

func TestPKI(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		pkitest.RunStore(t, func(t *testing.T) pki.Store {
			t.Helper()
			return open(t).Authority
		})
	})
}

func TestCode(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		codetest.RunStore(t, func(t *testing.T) code.Store {
			t.Helper()
			return open(t).Versions
		})
	})
}

func TestBucket(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		filebuckettest.RunStore(t, func(t *testing.T) filebucket.Store {
			t.Helper()
			return open(t).Backups
		})
	})
}

func TestAccess(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		rbactest.RunStore(t, func(t *testing.T) rbac.Store {
			t.Helper()
			return open(t).Access
		})
		rbactest.RunAuditStore(t, func(t *testing.T) rbac.AuditStore {
			t.Helper()
			return open(t).Audit
		})
	})
}

func TestMemos(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		memotest.RunStore(t, func(t *testing.T) memo.Store { t.Helper(); return open(t).Memos })
	})
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		scheduletest.RunStore(t, func(t *testing.T) schedule.Store { t.Helper(); return open(t).Schedules })
	})
}

func TestJobs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		jobtest.RunStore(t, func(t *testing.T) job.Store {
			t.Helper()
			return open(t).Jobs
		})
	})
}

func TestPreviews(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		previewtest.RunStore(t, func(t *testing.T) preview.Store {
			t.Helper()
			return open(t).Previews
		})
	})
}

func TestReleases(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		releasetest.RunStore(t, func(t *testing.T) release.Store {
			t.Helper()
			return open(t).Releases
		})
	})
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		policytest.RunStore(t, func(t *testing.T) policy.Store {
			t.Helper()
			return open(t).Policies
		})
	})
}

func TestSavedQueries(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		savedtest.RunStore(t, func(t *testing.T) saved.Store {
			t.Helper()
			return open(t).SavedQueries
		})
	})
}

func TestQueue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		compiletest.RunQueue(t, func(t *testing.T) compiletest.Backend {
			t.Helper()
			s := open(t)
			return compiletest.Backend{Queue: s.Queue, History: s.Queue, SetFacts: func(node fleet.Certname, seq int64) { setFacts(t, s, node, seq) }}
		})
	})
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		delivertest.RunStore(t, func(t *testing.T) delivertest.Backend {
			t.Helper()
			s := open(t)
			return delivertest.Backend{
				Store: s.Deliveries,
				Gave: func(node fleet.Certname, c deliver.Catalog, resources int) {
					err := s.Catalogs.SaveCatalog(t.Context(), inventory.Catalog{
						Certname: node, Environment: c.Environment, Digest: c.Digest, Version: c.Version, UUID: c.UUID, CompiledAt: c.CompiledAt, Compilation: c.Compilation,
						Resources: someResources(resources),
					})
					if err != nil {
						t.Fatal(err)
					}
				},
				Ran: func(node fleet.Certname, uuid string, at time.Time) {
					report := inventory.Report{
						ID: fleet.DigestOf([]byte(uuid)), Certname: node, Status: "changed", CatalogUUID: uuid, StartedAt: at, EndedAt: at, ReceivedAt: at,
					}
					if err := s.Reports.SaveReport(t.Context(), report); err != nil {
						t.Fatal(err)
					}
				},
			}
		})
	})
}

// someResources is n resources that count, and some that do not.
func someResources(n int) []inventory.Resource {
	all := []inventory.Resource{{Type: "Stage", Title: "main"}, {Type: "Class", Title: "main"}, {Type: "Host", Title: "offered", Exported: true}}
	for i := range n {
		all = append(all, inventory.Resource{Type: "Notify", Title: strconv.Itoa(i)})
	}
	return all
}

func TestReusables(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		compiletest.RunReusables(t, func(t *testing.T) compiletest.ReuseBackend {
			t.Helper()
			return reuseBackend(t, open(t))
		})
	})
}

func TestVerifications(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		compiletest.RunVerifications(t, func(t *testing.T) (compiletest.ReuseBackend, compile.Verifications) {
			t.Helper()
			s := open(t)
			return reuseBackend(t, s), s.Verifications
		})
		t.Run("ClassSets", func(t *testing.T) { testClassSets(t, open(t)) })
	})
}

func reuseBackend(t *testing.T, s *Store) compiletest.ReuseBackend {
	t.Helper()
	return compiletest.ReuseBackend{
		Backend:   compiletest.Backend{Queue: s.Queue, History: s.Queue, SetFacts: func(node fleet.Certname, seq int64) { setFacts(t, s, node, seq) }},
		Reusables: s.Reusables,
		Gave: func(c compile.Compilation) {
			err := s.Catalogs.SaveCatalog(t.Context(), inventory.Catalog{
				Certname: c.Node, Environment: c.Environment, Digest: c.Catalog, Version: c.Version, UUID: c.UUID, CompiledAt: c.FinishedAt, Compilation: c.ID,
			})
			if err != nil {
				t.Fatal(err)
			}
		},
	}
}

// Nodes with the same classes are one set; a deactivated one is of none.
func testClassSets(t *testing.T, s *Store) {
	t.Helper()
	for node, classes := range map[fleet.Certname][]string{
		"web-2": {"Base", "Web"}, "web-1": {"Web", "Base"}, "db-1": {"Base", "Db"}, "gone": {"Base"}, "other": {"Base"},
	} {
		saved := inventory.Catalog{Certname: node, Environment: "production", Digest: fleet.DigestOf([]byte(node))}
		if node == "other" {
			saved.Environment = "other"
		}
		for _, title := range classes {
			saved.Resources = append(saved.Resources, inventory.Resource{Type: "Class", Title: title})
		}
		saved.Resources = append(saved.Resources, inventory.Resource{Type: "Notify", Title: string(node)})
		if _, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: node, Values: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Catalogs.SaveCatalog(t.Context(), saved); err != nil {
			t.Fatal(err)
		}
	}
	err := s.write(t.Context(), func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "UPDATE nodes SET deactivated_at = 1 WHERE certname = 'gone'")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Verifications.ClassSets(t.Context(), "production")
	want := []compile.ClassSet{{Node: "web-1", Nodes: 2}, {Node: "db-1", Nodes: 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// setFacts gives a node facts with a chosen seq.
func setFacts(t *testing.T, s *Store, node fleet.Certname, seq int64) {
	t.Helper()
	if _, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: node, Values: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	err := s.write(t.Context(), func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "UPDATE factsets SET seq = $1 WHERE node_id = (SELECT id FROM nodes WHERE certname = $2)", seq, node)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCodeSources(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		sourcetest.RunStore(t, func(t *testing.T) source.Store {
			t.Helper()
			return open(t).CodeSources
		})
	})
}
