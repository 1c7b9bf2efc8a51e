package rbacapi

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// tokens answers what is about logins and tokens.
type tokens struct {
	*service
	logins rbac.Logins
}

// wish is what a token is to be. Client and description are taken and not kept.
type wish struct {
	Lifetime    pejson.Text `json:"lifetime"`
	Label       *string     `json:"label"`
	Description string      `json:"description"`
	Client      string      `json:"client"`
}

// label is what the token is to be called; a label that is there is not blank.
func (h *tokens) label(asked wish) (string, error) {
	if asked.Label == nil {
		return "", nil
	}
	label := strings.TrimSpace(*asked.Label)
	if label == "" {
		return "", h.Bad(wrongShape, map[string]string{"field": "label"}, "the label of a token cannot be blank; leave it out, or give one")
	}
	return label, nil
}

// kept is the life and the label of a token that somebody wishes.
func (h *tokens) kept(asked wish) (life time.Duration, label string, err error) {
	if life, err = lifetime(asked.Lifetime, h.Access.Config().MaxTokenLife); err != nil {
		return 0, "", err
	}
	label, err = h.label(asked)
	return life, label, err
}

// logIn counts a try before it reads who tries.
func (h *tokens) logIn(w http.ResponseWriter, r *http.Request) error {
	entry := h.Entry(r.Context())
	entry.Operation = "POST " + v1 + "/auth/token"
	if err := h.logins.Knock(r.Context(), entry); err != nil {
		return err
	}
	var asked struct {
		Login    string `json:"login"`
		Password string `json:"password"`
		wish
	}
	if err := h.read(w, r, &asked); err != nil {
		return err
	}
	if asked.Login == "" || asked.Password == "" {
		return h.Bad(malformed, nil, "login and password are needed: {\"login\": NAME, \"password\": WORD}")
	}
	life, label, err := h.kept(asked.wish)
	if err != nil {
		return err
	}
	issued, err := h.logins.Open(r.Context(), entry, rbac.Attempt{Name: asked.Login, Password: asked.Password, Life: life, Label: label})
	if fault.Is(err, fault.Denied) {
		return pejson.Stranger(err)
	}
	if err != nil {
		return err
	}
	pejson.Write(w, http.StatusOK, map[string]string{"token": issued.Text})
	return nil
}

// createToken makes another token for who asks.
func (h *tokens) createToken(w http.ResponseWriter, r *http.Request) error {
	var asked wish
	if r.ContentLength != 0 {
		if err := h.read(w, r, &asked); err != nil {
			return err
		}
	}
	life, label, err := h.kept(asked)
	if err != nil {
		return err
	}
	issued, err := h.Access.NewToken(r.Context(), fleet.ActorFrom(r.Context()), label, life, nil)
	if err != nil {
		return err
	}
	pejson.Write(w, http.StatusOK, map[string]string{"token": issued.Text})
	return nil
}

// authenticate says whose a token is.
func (h *tokens) authenticate(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Token  string `json:"token"`
		Update *bool  `json:"update_last_activity?"` // missing: yes
	}
	if err := h.read(w, r, &asked); err != nil {
		return err
	}
	b, err := h.Access.Holder(r.Context(), asked.Token)
	switch {
	case fault.Is(err, fault.NotFound):
		return h.Bad(invalidToken, nil, "the token is not known here; it never was one, or was revoked")
	case err != nil:
		return err
	case b.User.Disabled:
		return h.Bad(tokenRevoked, nil, "the user of the token is revoked")
	case b.Token.Expired(h.Access.Now()):
		return h.Bad(tokenExpired, nil, "the token has expired; log in again")
	}
	if asked.Update == nil || *asked.Update {
		h.Access.Touch(b.Token)
	}
	shown, err := h.shown(r.Context(), b.User)
	if err != nil {
		return err
	}
	pejson.Write(w, http.StatusOK, struct {
		user
		UserID string `json:"user_id"`
		token
		Creation   string  `json:"creation"`
		Expiration *string `json:"expiration"`
		LastActive *string `json:"last_active"`
		Timeout    *int    `json:"timeout"`
	}{
		user: shown, UserID: shown.ID, token: tokenOf(b.Token),
		Creation: stamp(b.Token.CreatedAt), Expiration: stampOf(b.Token.ExpiresAt), LastActive: stampOf(b.Token.UsedAt),
	})
	return nil
}

// token is what is shown of a token, besides its times. Client and description are not kept.
type token struct {
	Client      *string `json:"client"`
	Description *string `json:"description"`
	Label       *string `json:"label"`
}

func tokenOf(t rbac.Token) (shown token) {
	if t.Label != "" {
		shown.Label = &t.Label
	}
	return shown
}

// listedToken is a token in a list.
type listedToken struct {
	ID         string  `json:"id"`
	Creation   string  `json:"creation_date"`
	Expiration *string `json:"expiration_date"`
	LastActive *string `json:"last_active_date"`
	Timeout    *int    `json:"session_timeout"`
	token
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func stampOf(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := stamp(t)
	return &text
}

func (h *tokens) ownTokens(w http.ResponseWriter, r *http.Request) error {
	return h.listTokens(w, r, fleet.ActorFrom(r.Context()).Name)
}

func (h *tokens) userTokens(w http.ResponseWriter, r *http.Request) error {
	u, err := h.subject(r, r.PathValue("sid"), fleet.TokenRead)
	if err != nil {
		return err
	}
	return h.listTokens(w, r, u.Name)
}

// tokenOrders are what a list of tokens can be sorted by.
var tokenOrders = map[string]func(a, b rbac.Token) int{
	"creation_date":    func(a, b rbac.Token) int { return a.CreatedAt.Compare(b.CreatedAt) },
	"expiration_date":  func(a, b rbac.Token) int { return a.ExpiresAt.Compare(b.ExpiresAt) },
	"last_active_date": func(a, b rbac.Token) int { return a.UsedAt.Compare(b.UsedAt) },
	"client":           func(a, b rbac.Token) int { return strings.Compare(a.ID, b.ID) },
}

func (h *tokens) listTokens(w http.ResponseWriter, r *http.Request, owner string) error {
	asked, err := pageOf(h.service, r.URL.Query(), "creation_date", tokenOrders)
	if err != nil {
		return err
	}
	held, err := h.of(r.Context(), owner)
	if err != nil {
		return err
	}
	total := len(held)
	items := []listedToken{}
	for _, t := range cut(held, asked, tokenOrders) {
		items = append(items, listedToken{ID: t.ID, Creation: stamp(t.CreatedAt), Expiration: stampOf(t.ExpiresAt), LastActive: stampOf(t.UsedAt), token: tokenOf(t)})
	}
	asked.Total = total
	pejson.Write(w, http.StatusOK, map[string]any{"items": items, "pagination": asked})
	return nil
}

// of reads all tokens of an owner, of everybody if none is named.
func (h *tokens) of(ctx context.Context, owner string) (all []rbac.Token, err error) {
	for after := ""; ; {
		tokens, err := h.Access.Store.Tokens(ctx, owner, rbac.Page{After: after, Limit: pageSize})
		if err != nil {
			return nil, err
		}
		all = append(all, tokens...)
		if len(tokens) < pageSize {
			return all, nil
		}
		after = tokens[len(tokens)-1].ID
	}
}

// page is a part of a list.
type page struct {
	Limit   int    `json:"limit"`
	Offset  int    `json:"offset"`
	Order   string `json:"order"`
	OrderBy string `json:"order_by"`
	Total   int    `json:"total"`
}

// What a page may be.
const (
	usualPage   = 500
	largestPage = 10_000
)

// pageOf reads which part of a list is asked for, and in which order.
func pageOf[T any](h *service, query url.Values, by string, orders map[string]func(a, b T) int) (page, error) {
	p := page{Limit: usualPage, Order: cmp.Or(query.Get("order"), "asc"), OrderBy: cmp.Or(query.Get("order_by"), by)}
	for name, number := range map[string]*int{"limit": &p.Limit, "offset": &p.Offset} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || name == "limit" && (n == 0 || n > largestPage) {
			return p, h.Bad(wrongShape, map[string]string{"field": name}, "%s: %.40q does not fit; limit is 1 to %d, offset 0 or more", name, text, largestPage)
		}
		*number = n
	}
	if orders[p.OrderBy] == nil || p.Order != "asc" && p.Order != "desc" {
		return p, h.Bad(wrongShape, map[string]string{"field": "order_by"}, "the order %.40q %.40q is not known; order is asc or desc", p.OrderBy, p.Order)
	}
	return p, nil
}

// cut sorts a list and takes a part of it.
func cut[T any](all []T, p page, orders map[string]func(a, b T) int) []T {
	slices.SortStableFunc(all, orders[p.OrderBy])
	if p.Order == "desc" {
		slices.Reverse(all)
	}
	from := min(p.Offset, len(all))
	return all[from:min(len(all), from+p.Limit)]
}
