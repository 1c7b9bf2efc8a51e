package classifier

import (
	"net/http"
	"slices"
)

// wireEnvironment is an environment that has code.
type wireEnvironment struct {
	Name          string `json:"name"`
	SyncSucceeded bool   `json:"sync_succeeded"` // nothing is kept of its classes, so nothing can be behind
}

func (h *Handler) listEnvironments(w http.ResponseWriter, r *http.Request) error {
	deployed, err := h.Fleet.Deployed(r.Context())
	if err != nil {
		return err
	}
	list := make([]wireEnvironment, len(deployed))
	for i, e := range deployed {
		list[i] = wireEnvironment{Name: string(e.Name), SyncSucceeded: true}
	}
	write(w, http.StatusOK, list)
	return nil
}

func (h *Handler) showEnvironment(w http.ResponseWriter, r *http.Request) error {
	deployed, err := h.Fleet.Deployed(r.Context())
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if !slices.ContainsFunc(deployed, func(e Environment) bool { return string(e.Name) == name }) {
		return bad("not-found", name, "the environment %.80q has no code", name)
	}
	write(w, http.StatusOK, wireEnvironment{Name: name, SyncSucceeded: true})
	return nil
}

// lastClassUpdate is when classes last came: with the newest code.
func (h *Handler) lastClassUpdate(w http.ResponseWriter, r *http.Request) error {
	deployed, err := h.Fleet.Deployed(r.Context())
	if err != nil {
		return err
	}
	answer := map[string]any{"last_update": nil}
	if len(deployed) > 0 {
		newest := slices.MaxFunc(deployed, func(a, b Environment) int { return a.At.Compare(b.At) })
		answer["last_update"] = newest.At.UTC().Format(wireTime)
	}
	write(w, http.StatusOK, answer)
	return nil
}

// updateClasses has nothing to do: classes are those of the deployed code, always.
func (h *Handler) updateClasses(w http.ResponseWriter, _ *http.Request) error {
	write(w, http.StatusCreated, map[string]any{})
	return nil
}
