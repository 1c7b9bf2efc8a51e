package release

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Catalogs is the part of Previews that concerns catalogs: which catalog a share stands for, and whether its node would be given it now.
type Catalogs struct {
	Rows   Rows
	Inputs Inputs
	Trust  Trusted
	Reuser *compile.Reuser
}

// Rows has compilations; a compile.Queue does.
type Rows interface {
	// Compilations is those of the numbers that are kept.
	Compilations(ctx context.Context, ids []int64) ([]compile.Compilation, error)
}

// Inputs has what compilations read.
type Inputs interface {
	// WithInputs is a done compilation with what it read; NotFound if one of both is not kept.
	WithInputs(ctx context.Context, id int64) (compile.Compilation, error)
}

// Trusted knows what the certificates of nodes prove; checkin.Trust does.
type Trusted interface {
	Known(ctx context.Context, node fleet.Certname) (json.RawMessage, error)
}

// Catalog implements Previews. A catalog that was compiled of another version gets a name of its own for this one.
func (c Catalogs) Catalog(ctx context.Context, p Preview, s Share) (deliver.Catalog, error) {
	rows, err := c.Rows.Compilations(ctx, []int64{s.Compilation})
	if err != nil {
		return deliver.Catalog{}, err
	}
	if len(rows) == 0 || rows[0].State != compile.Done || rows[0].Catalog != s.Fresh {
		return deliver.Catalog{}, fault.New(fault.NotFound, "the compilation of %s is not kept any more", s.Node)
	}
	row := rows[0]
	named := row.UUID
	if row.Version != p.Version || row.Environment != p.Environment {
		what := strings.Join([]string{"tutti", string(s.Node), string(p.Environment), string(p.Version), string(s.Fresh)}, " ")
		named = uuid.NewSHA1(uuid.NameSpaceURL, []byte(what)).String()
	}
	return deliver.Catalog{
		Digest:      s.Fresh,
		Environment: p.Environment,
		Version:     p.Version,
		UUID:        named,
		Compilation: row.ID,
		CompiledAt:  row.FinishedAt,
	}, nil
}

// Stands implements Previews.
func (c Catalogs) Stands(ctx context.Context, node fleet.Certname, given deliver.Catalog) (string, error) {
	from, err := c.Inputs.WithInputs(ctx, given.Compilation)
	if fault.Is(err, fault.NotFound) {
		return "what it was compiled with is not kept any more", nil // that is the answer
	}
	if err != nil {
		return "", err
	}
	trusted, err := c.Trust.Known(ctx, node)
	if err != nil {
		return "", err
	}
	verdict, err := c.Reuser.Stands(ctx, from, compile.Wish{
		Node:        node,
		Environment: given.Environment,
		Version:     given.Version,
		Trusted:     trusted,
		Staged:      true,
	})
	if err != nil || verdict.Holds {
		return "", err
	}
	return cmp.Or(verdict.Why, "its inputs changed"), nil
}
