package rbacapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// maxNamed is how many tokens, users, labels and ids a request names of each.
const maxNamed = 1000

// ending is which tokens are to be revoked.
type ending struct {
	Tokens pejson.List `json:"revoke_tokens"`
	Users  pejson.List `json:"revoke_tokens_by_usernames"`
	Labels pejson.List `json:"revoke_tokens_by_labels"`
	IDs    pejson.List `json:"revoke_tokens_by_ids"` // UUIDs of users, or ids of tokens
}

// revokeTokens ends those tokens that it can, and says which ones it could not.
func (h *tokens) revokeTokens(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	asked := ending{
		Tokens: pejson.ListOf(query.Get("revoke_tokens")), Users: pejson.ListOf(query.Get("revoke_tokens_by_usernames")),
		Labels: pejson.ListOf(query.Get("revoke_tokens_by_labels")), IDs: pejson.ListOf(query.Get("revoke_tokens_by_ids")),
	}
	if r.ContentLength != 0 {
		if err := h.read(w, r, &asked); err != nil {
			return err
		}
	}
	total := 0
	for _, named := range []pejson.List{asked.Tokens, asked.Users, asked.Labels, asked.IDs} {
		if total += len(named); len(named) > maxNamed {
			return h.Bad(malformed, nil, "%d are named in one list, at most %d are allowed", len(named), maxNamed)
		}
	}
	if total == 0 {
		return h.Bad(malformed, nil, "name what to revoke: revoke_tokens, revoke_tokens_by_usernames, revoke_tokens_by_labels or revoke_tokens_by_ids")
	}
	failed := unrevoked{of: total}
	for _, text := range asked.Tokens { // never repeated in an answer
		failed.note("malformed_tokens", "", h.endText(r.Context(), text))
	}
	for _, name := range asked.Users {
		failed.note("usernames", name, h.endUser(r.Context(), name))
	}
	for _, label := range asked.Labels {
		actor := fleet.ActorFrom(r.Context())
		_, err := h.Access.RevokeToken(r.Context(), actor, actor.Name, label)
		failed.note("labels", label, err)
	}
	for _, id := range asked.IDs {
		failed.note("ids", id, h.endID(r.Context(), id))
	}
	if err := failed.problem(h.service); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// revokeToken ends the token that the path names.
func (h *tokens) revokeToken(w http.ResponseWriter, r *http.Request) error {
	failed := unrevoked{of: 1}
	failed.note("malformed_tokens", "", h.endText(r.Context(), r.PathValue("token")))
	if err := failed.problem(h.service); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// endText ends a token by its text. One that is not known is not good any more, which is what was wanted.
func (h *tokens) endText(ctx context.Context, text string) error {
	if _, ok := rbac.HashOf(text); !ok {
		return fault.New(fault.NotFound, "that cannot be a token")
	}
	if err := h.Access.RevokeShown(ctx, text); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return nil
}

// endUser ends all tokens of a user, also the one that asks.
func (h *tokens) endUser(ctx context.Context, name string) error {
	actor := fleet.ActorFrom(ctx)
	own := actor.Kind == fleet.UserActor && actor.Name == name
	if !own {
		if err := rbac.Allow(actor, fleet.TokenWrite, fleet.Object{}); err != nil {
			return err
		}
		if _, err := h.Access.Store.User(ctx, name); err != nil {
			return err
		}
	}
	if _, err := h.Access.RevokeTokens(ctx, actor, name); err != nil || !own {
		return err
	}
	_, err := h.Access.RevokeToken(ctx, actor, name, actor.Token)
	return err
}

// endID ends all tokens of the user with a UUID, or the token with an id.
func (h *tokens) endID(ctx context.Context, id string) error {
	if uuid.MatchString(strings.ToLower(id)) {
		u, err := h.userOf(ctx, id)
		if err != nil {
			return err
		}
		return h.endUser(ctx, u.Name)
	}
	actor := fleet.ActorFrom(ctx)
	_, err := h.Access.RevokeToken(ctx, actor, actor.Name, id)
	if !fault.Is(err, fault.NotFound) || rbac.Allow(actor, fleet.TokenWrite, fleet.Object{}) != nil {
		return err
	}
	all, err := h.of(ctx, "")
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.ID == id {
			_, err := h.Access.RevokeToken(ctx, actor, t.Owner, id)
			return err
		}
	}
	return fault.New(fault.NotFound, "there is no token %.80q", id)
}

// unrevoked is what could not be revoked, and why.
type unrevoked struct {
	of, failed int
	lists      map[string][]string
	refusal    error
	broken     error
}

func (u *unrevoked) note(list, name string, err error) {
	if err == nil {
		return
	}
	if u.lists == nil {
		u.lists = map[string][]string{}
	}
	u.failed++
	if fault.Is(err, fault.Denied) {
		u.refusal = err
	} else if !fault.Is(err, fault.NotFound) {
		u.broken = err
	}
	if name == "" {
		name = "(not repeated)"
	}
	u.lists[list] = append(u.lists[list], name)
}

// problem is what the caller is told; nil when all went well.
func (u *unrevoked) problem(h *service) error {
	if u.failed == 0 {
		return nil
	}
	if u.broken != nil {
		return u.broken
	}
	details := map[string]any{"other_tokens_revoked": u.failed < u.of}
	for name, list := range u.lists {
		details[name] = list
	}
	if u.refusal != nil {
		return h.Named(denied, details, u.refusal)
	}
	return h.Bad(notAllRevoked, details, "%s could not be found and revoked; details lists them", fault.Count(u.failed, "token"))
}
