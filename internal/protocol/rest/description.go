package rest

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/tutti-project/tutti/api"
)

// description answers what the operations are, and of which program.
type description struct {
	document func() ([]byte, error)
}

func newDescription() *description { return &description{document: sync.OnceValues(api.OpenAPI)} }

func (h *description) bindings() []binding {
	return []binding{answer(api.Description, h.describe), answer(api.VersionShow, h.version)}
}

func (h *description) version(context.Context, api.Nothing) (api.Build, error) {
	return api.ProgramBuild(), nil
}

func (h *description) describe(context.Context, api.Nothing) (json.RawMessage, error) {
	return h.document()
}
