package sql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// ruleKind is a kind of rule; its words are for people.
type ruleKind struct{ kind, words string }

// The kinds of rules.
var (
	noiseRules  = ruleKind{"noise", "noise rule"}
	policyRules = ruleKind{"policy", "policy"}
	freezeRules = ruleKind{"freeze", "freeze"}
	queryRules  = ruleKind{"query", "saved query"}
)

// ruleRow is one version of a rule.
type ruleRow struct {
	name string
	fleet.Stamp
	document string
}

const ruleColumns = "name, version, author, changed_at, removed, document"

func scanRule(row scanner) (r ruleRow, err error) {
	err = row.Scan(&r.name, &r.Version, &r.Author, at(&r.At), &r.Removed, &r.document)
	return r, err
}

// rules is the newest version of each rule of a kind, without those that are removed.
func (s *base) rules(ctx context.Context, k ruleKind) ([]ruleRow, error) {
	rows, err := collect(ctx, s.reads, scanRule, "SELECT "+ruleColumns+` FROM rule_versions r WHERE kind = $1 AND removed = 0 AND version =
		(SELECT MAX(version) FROM rule_versions n WHERE n.kind = r.kind AND n.name = r.name) ORDER BY name`, k.kind)
	return rows, explain(err, "list rules (%s)", k.words)
}

// ruleHistory is every version of a rule, the newest first.
func (s *base) ruleHistory(ctx context.Context, k ruleKind, name string) ([]ruleRow, error) {
	rows, err := collect(ctx, s.reads, scanRule, "SELECT "+ruleColumns+" FROM rule_versions WHERE kind = $1 AND name = $2 ORDER BY version DESC", k.kind, name)
	if err == nil && len(rows) == 0 {
		err = fault.New(fault.NotFound, "there is no %s %.80q", k.words, name)
	}
	return rows, explain(err, "read the history of %s %s", k.words, name)
}

// saveRule stores the next version of a rule. Two that are stored at once get one number after the other, or one
// of them is told that it came second.
func (s *base) saveRule(ctx context.Context, k ruleKind, r ruleRow) (ruleRow, error) {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		before, err := scanRule(q.row(ctx, "SELECT "+ruleColumns+" FROM rule_versions WHERE kind = $1 AND name = $2 ORDER BY version DESC LIMIT 1", k.kind, r.name))
		none := errors.Is(err, sql.ErrNoRows)
		if err != nil && !none {
			return err
		}
		if r.Removed {
			if none || before.Removed {
				return fault.New(fault.NotFound, "there is no %s %.80q", k.words, r.name)
			}
			r.document = before.document
		}
		r.Version = before.Version + 1
		n, err := q.exec(ctx, `INSERT INTO rule_versions (kind, name, version, removed, document, author, changed_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`, k.kind, r.name, r.Version, bit(r.Removed), r.document, r.Author, micros(r.At))
		if err == nil && n == 0 {
			return fault.New(fault.Conflict, "somebody else changed the %s %s at the same time; look at it and try again", k.words, r.name)
		}
		return err
	})
	return r, explain(err, "save %s %s", k.words, r.name)
}

// readRules makes rules of rows.
func readRules[R any](rows []ruleRow, err error, into func(row ruleRow, rule *R) any) ([]R, error) {
	if err != nil {
		return nil, err
	}
	rules := []R{}
	for _, row := range rows {
		var rule R
		if err := json.Unmarshal([]byte(row.document), into(row, &rule)); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "rule %s, version %d, is damaged", row.name, row.Version)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// storeRule stores a rule whose words are definition.
func storeRule[R any](ctx context.Context, s *base, k ruleKind, row ruleRow, definition any, into func(row ruleRow, rule *R) any) (rule R, err error) {
	text, err := json.Marshal(definition)
	if err != nil {
		return rule, explain(err, "save %s %s", k.words, row.name)
	}
	row.document = string(text)
	row, err = s.saveRule(ctx, k, row)
	rules, err := readRules([]ruleRow{row}, err, into)
	if err != nil {
		return rule, err
	}
	return rules[0], nil
}
