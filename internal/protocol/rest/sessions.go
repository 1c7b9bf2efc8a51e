package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// sessions answers the operations of logins and tokens.
type sessions struct {
	gate     *gate
	recorder *recorder
	access   *rbac.Access
	logins   rbac.Logins
	console  func() string // its address; empty: it is not served
}

func (h *sessions) bindings() []binding {
	return []binding{
		raw(api.SessionOpen, h.login),
		answer(api.SessionLink, h.linkSession),
		answer(api.SessionShow, h.showSession),
		answer(api.SessionClose, h.closeSession),
		answer(api.TokenList, h.listTokens),
		answer(api.TokenCreate, h.createToken),
		answer(api.TokenRevoke, h.revokeToken),
		answer(api.TokenRevokeAll, h.revokeTokens),
	}
}

// login counts a try before it reads who tries.
func (h *sessions) login(w http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
	if err := h.logins.Knock(r.Context(), h.recorder.entry(r.Context(), api.SessionOpen.Operation().Name, "")); err != nil {
		return nil, err
	}
	return typed(h.openSession)(w, r, begin)
}

// openSession logs somebody in.
func (h *sessions) openSession(ctx context.Context, request api.LoginRequest) (api.IssuedToken, error) {
	life, err := lifeOf(request.Seconds)
	if err != nil {
		return api.IssuedToken{}, err
	}
	issued, err := h.logins.Open(ctx, h.recorder.entry(ctx, api.SessionOpen.Operation().Name, request.Name), rbac.Attempt{
		Name: request.Name, Password: request.Password, Life: life, Roles: request.Roles, Label: request.Label, Code: request.Code,
	})
	if err != nil {
		return api.IssuedToken{}, err
	}
	return issuedOf(issued), nil
}

// linkSession makes a link with a code. The code is behind the # of the address: browsers do not send that part, so no log has it.
func (h *sessions) linkSession(ctx context.Context, _ api.Nothing) (api.LoginLink, error) {
	address := h.console()
	if address == "" {
		return api.LoginLink{}, fault.New(fault.Unavailable, "this server does not serve the console; set console_listen, for example to :8143, and restart it")
	}
	code, err := h.access.NewCode(ctx, fleet.ActorFrom(ctx))
	if err != nil {
		return api.LoginLink{}, err
	}
	return api.LoginLink{URL: address + "/login#code=" + code.Text, ExpiresAt: code.ExpiresAt}, nil
}

// maxSeconds keeps a life from overflowing a duration.
const maxSeconds = 100 * 366 * 24 * 3600

func lifeOf(seconds int64) (time.Duration, error) {
	if seconds < 0 || seconds > maxSeconds {
		return 0, fault.New(fault.Invalid, "seconds must be 1 or more, or 0 for the default, not %d", seconds)
	}
	return time.Duration(seconds) * time.Second, nil
}

func issuedOf(issued rbac.Issued) api.IssuedToken {
	return api.IssuedToken{AccessToken: tokenDataOf(issued.Token), Token: issued.Text}
}

func tokenDataOf(t rbac.Token) api.AccessToken {
	return api.AccessToken{
		ID: t.ID, User: t.Owner, Label: t.Label, Roles: t.Roles, CreatedAt: t.CreatedAt.UTC(), ExpiresAt: timeOf(t.ExpiresAt), UsedAt: timeOf(t.UsedAt),
	}
}

func (h *sessions) showSession(ctx context.Context, _ api.Nothing) (api.Session, error) {
	actor := fleet.ActorFrom(ctx)
	session := api.Session{Kind: string(actor.Kind), Name: actor.Name, TokenID: actor.Token, Roles: []string{}, Grants: actor.Grants}
	user, err := h.access.Store.User(ctx, actor.Name)
	if err != nil && fault.Of(err) != fault.NotFound { // a certificate may have rights by itself
		return session, err
	}
	if (user.Kind == rbac.Person) == (actor.Kind == fleet.UserActor) {
		session.Roles = append(session.Roles, user.Roles...)
	}
	if actor.Narrowed {
		session.Grants = actor.Within
	}
	tokens, err := h.access.Store.Tokens(ctx, actor.Name, rbac.Page{Limit: 1000})
	for _, t := range tokens {
		if t.ID == actor.Token {
			session.ExpiresAt, session.NarrowedTo = timeOf(t.ExpiresAt), t.Roles
		}
	}
	return session, err
}

func (h *sessions) closeSession(ctx context.Context, _ api.Nothing) (api.Nothing, error) {
	actor := fleet.ActorFrom(ctx)
	if actor.Kind != fleet.UserActor {
		return api.Nothing{}, fault.New(fault.Denied, "%s %s shows its certificate: there is no login to end", actor.Kind, actor.Name)
	}
	_, err := h.access.RevokeToken(ctx, actor, actor.Name, actor.Token)
	return api.Nothing{}, err
}

// owner is whose tokens a request is about. Those of others need the permission.
func (h *sessions) owner(ctx context.Context, user string, permission fleet.Permission) (string, error) {
	actor := fleet.ActorFrom(ctx)
	switch {
	case actor.Kind == fleet.UserActor && (user == api.Me || user == actor.Name):
		return actor.Name, nil
	case user == api.Me:
		return "", fault.New(fault.Denied, "%s %s shows its certificate: it has no tokens and no password of its own", actor.Kind, actor.Name)
	}
	return user, h.gate.allow(ctx, permission, fleet.Object{})
}

func (h *sessions) listTokens(ctx context.Context, request api.TokenListRequest) (api.List[api.AccessToken], error) {
	list := api.List[api.AccessToken]{Items: []api.AccessToken{}}
	page, err := accessPage(request.After, request.Limit)
	if err != nil {
		return list, err
	}
	owner, err := h.owner(ctx, request.User, fleet.TokenRead)
	if err != nil {
		return list, err
	}
	if owner == api.AllUsers {
		owner = ""
	} else if _, err := h.access.Store.User(ctx, owner); err != nil {
		return list, err
	}
	tokens, err := h.access.Store.Tokens(ctx, owner, page)
	for _, t := range tokens {
		list.Items = append(list.Items, tokenDataOf(t))
	}
	if len(tokens) == page.Limit {
		list.Next = tokens[len(tokens)-1].ID
	}
	return list, err
}

// accessPage checks the paging fields of a request.
func accessPage(after string, limit int) (rbac.Page, error) {
	page, err := pageOf(after, limit)
	return rbac.Page{After: page.After, Limit: page.Limit}, err
}

func (h *sessions) createToken(ctx context.Context, request api.TokenCreateRequest) (api.IssuedToken, error) {
	if request.Label == "" && fleet.ActorFrom(ctx).Kind == fleet.UserActor {
		return api.IssuedToken{}, fault.New(fault.Invalid, "a token needs a label, by which it is found and revoked")
	}
	life, err := lifeOf(request.Seconds)
	if err != nil {
		return api.IssuedToken{}, err
	}
	issued, err := h.access.NewToken(ctx, fleet.ActorFrom(ctx), request.Label, life, request.Roles)
	if err != nil {
		return api.IssuedToken{}, err
	}
	return issuedOf(issued), nil
}

func (h *sessions) revokeToken(ctx context.Context, request api.TokenRevokeRequest) (api.Nothing, error) {
	owner, err := h.owner(ctx, request.User, fleet.TokenWrite)
	if err != nil {
		return api.Nothing{}, err
	}
	_, err = h.access.RevokeToken(ctx, fleet.ActorFrom(ctx), owner, request.Token)
	return api.Nothing{}, err
}

func (h *sessions) revokeTokens(ctx context.Context, request api.UserRequest) (api.RevokedTokens, error) {
	owner, err := h.owner(ctx, request.User, fleet.TokenWrite)
	if err != nil {
		return api.RevokedTokens{}, err
	}
	n, err := h.access.RevokeTokens(ctx, fleet.ActorFrom(ctx), owner)
	return api.RevokedTokens{Revoked: n}, err
}
