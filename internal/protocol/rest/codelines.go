package rest

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const (
	usualAround     = 5
	maxAround       = 50
	maxLineRunes    = 400
	currentVersion  = "current"
	maxReadFile     = 4 << 20
	deployedBelow   = "/etc/puppetlabs/code/environments/"
	leastDigitsOfID = 6
)

// readable are the files that code:read shows lines of: what errors name. Data (hiera, keys, settings) may hold secrets, and is not among them.
var readable = []string{".pp", ".epp", ".erb", ".rb"}

// versionLines shows lines around a place in the code of a version. Who may read the code of some environments only is shown versions that
// were deployed to those: a version that was only previewed is of no environment.
func (h *versions) versionLines(ctx context.Context, request api.VersionLinesRequest) (api.CodeLines, error) {
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return api.CodeLines{}, err
	}
	around := request.Around
	if around == 0 {
		around = usualAround
	}
	if request.Line < 1 || around < 0 || around > maxAround {
		return api.CodeLines{}, fault.New(fault.Invalid, "line is a number from 1, and around one from 0 to %d", maxAround)
	}
	file := path.Clean(strings.TrimPrefix(request.File, deployedBelow+string(env)+"/"))
	if !slices.Contains(readable, path.Ext(file)) {
		return api.CodeLines{},
			fault.New(fault.Invalid, "lines are shown of manifests, templates and Ruby code (%s), not of %.200q", strings.Join(readable, ", "), file)
	}
	version, err := h.namedVersion(ctx, env, request.Version)
	if err != nil {
		return api.CodeLines{}, err
	}
	manifest, err := h.code.Manifest(ctx, env, version)
	if err != nil {
		return api.CodeLines{}, err
	}
	i := slices.IndexFunc(manifest.Files, func(f code.File) bool { return f.Path == file && f.Kind == code.Regular })
	if i < 0 {
		return api.CodeLines{}, &fault.Error{
			Kind: fault.NotFound, Detail: fmt.Sprintf("version %s of environment %s has no file %.200q", version.Short(), env, file), Hint: nearFile(file, manifest),
		}
	}
	text, err := cas.Bytes(ctx, h.blobs, manifest.Files[i].Digest, maxReadFile)
	if err != nil {
		return api.CodeLines{}, err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if request.Line > len(lines) {
		return api.CodeLines{}, fault.New(fault.NotFound, "%s of version %s has %s, no line %d", file, version.Short(), fault.Count(len(lines), "line"), request.Line)
	}
	first := max(1, request.Line-around)
	shown := slices.Clone(lines[first-1 : min(len(lines), request.Line+around)])
	for i := range shown {
		shown[i] = cutLine(strings.ToValidUTF8(strings.TrimSuffix(shown[i], "\r"), "\uFFFD"))
	}
	return api.CodeLines{
		Environment: string(env), Version: string(version), File: file, Line: request.Line, From: first, Lines: shown, Last: len(lines),
	}, nil
}

// nearFile is which files of a version may be meant: those of a name that is near, or of the same name elsewhere.
func nearFile(file string, manifest code.Manifest) string {
	var near, same []string
	for _, f := range manifest.Files {
		if f.Kind != code.Regular || !slices.Contains(readable, path.Ext(f.Path)) {
			continue
		}
		near = append(near, f.Path)
		if path.Base(f.Path) == path.Base(file) && len(same) < maxNearFiles {
			same = append(same, f.Path)
		}
	}
	if len(same) > 0 {
		return "did you mean " + strings.Join(same, " or ") + "?"
	}
	return fault.DidYouMean(file, near)
}

// maxNearFiles is how many files of the same name are offered.
const maxNearFiles = 3

func cutLine(line string) string {
	if utf8.RuneCountInString(line) <= maxLineRunes {
		return line
	}
	return string([]rune(line)[:maxLineRunes]) + "…"
}

// namedVersion finds a version that somebody may see the code of by its first digits.
func (h *versions) namedVersion(ctx context.Context, env fleet.Environment, named string) (fleet.Digest, error) {
	deployed, err := h.code.Versions(ctx, env, maxVersions)
	if err != nil {
		return "", err
	}
	if len(named) < leastDigitsOfID {
		return "", fault.New(fault.Invalid, "a version is named by its id, at least %d digits of it, or by %s", leastDigitsOfID, currentVersion)
	}
	for _, v := range deployed {
		if named == currentVersion || strings.HasPrefix(string(v.ID), named) {
			return v.ID, nil
		}
	}
	id, err := fleet.ParseDigest(named)
	if err != nil || h.gate.allow(ctx, fleet.CodeRead, fleet.Object{}) != nil {
		return "", fault.New(fault.NotFound, "environment %s has no version %.80q; see `tutti code versions %s`", env, named, env)
	}
	return id, nil
}
