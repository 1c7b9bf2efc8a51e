package code

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// Inline makes a catalog static: it adds what the file server would say of the
// sources of its File resources, so that an agent asks for content only, and a
// changed file is a changed catalog. checksumTypes is what the agent can check,
// best first. The rest of the document stays as it is, byte for byte.
//
// A resource is left alone unless all its sources are of this server
// (puppet:///...) and what was found is in the modules mount. A source that is
// not there is left to the agent. Invalid when no checksum type is known.
func Inline(ctx context.Context, tree *Tree, catalog []byte, checksumTypes []string) ([]byte, error) {
	out, _, err := InlineUsing(ctx, tree, catalog, checksumTypes)
	return out, err
}

// Used is what of a version became part of a catalog.
type Used struct {
	Trees   []string // files and directories, or where they were looked for
	Modules []string // modules in which they were
}

// InlineUsing is Inline, and says what of the version it used.
func InlineUsing(ctx context.Context, tree *Tree, catalog []byte, checksumTypes []string) ([]byte, Used, error) {
	checksumType, err := commonChecksum(checksumTypes)
	if err != nil {
		return nil, Used{}, err
	}
	members, err := splitObject(catalog)
	if err != nil {
		return nil, Used{}, fault.Wrap(fault.Invalid, err, "the catalog is not a JSON object")
	}
	in := inliner{tree: tree, checksumType: checksumType}
	for _, m := range members {
		if m.name != "resources" {
			continue
		}
		err := eachFile(m.value, func(r inlineResource) error { return in.add(ctx, r) })
		if err != nil {
			return nil, Used{}, err
		}
	}
	out, err := in.join(members)
	return out, in.used, err
}

func commonChecksum(wanted []string) (string, error) {
	for _, name := range wanted {
		if KnownChecksum(name) {
			return name, nil
		}
	}
	return "", fault.New(fault.Invalid, "unable to find a common checksum type between agent %q and server %q",
		strings.Join(wanted, "."), strings.Join(checksumTypes, "."))
}

// inlineResource is a File that may have a source of this server.
type inlineResource struct {
	title      string
	parameters jsontext.Value
}

// eachFile calls f for the File resources of a catalog that mention this server.
// Most resources do not: they are only passed over.
func eachFile(resources jsontext.Value, f func(inlineResource) error) error {
	dec := newDecoder(resources)
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '[' {
		return fault.Wrap(fault.Invalid, err, "the catalog's resources are not a list")
	}
	for dec.PeekKind() != ']' {
		typ, r, err := readResource(dec, resources)
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "the catalog's resources are not what they should be")
		}
		if typ != "File" || !bytes.Contains(r.parameters, []byte("puppet:")) {
			continue
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

func readResource(dec *jsontext.Decoder, text []byte) (typ string, r inlineResource, err error) {
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return "", r, errors.Join(err, errors.New("a resource is no object"))
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return "", r, err
		}
		switch name.String() {
		case "type":
			typ, err = readString(dec)
		case "title":
			r.title, err = readString(dec)
		case "parameters":
			r.parameters, err = readValue(dec, text)
		default:
			err = dec.SkipValue()
		}
		if err != nil {
			return "", r, err
		}
	}
	_, err = dec.ReadToken()
	return typ, r, err
}

func readString(dec *jsontext.Decoder) (string, error) {
	token, err := dec.ReadToken()
	if err == nil && token.Kind() != '"' {
		err = errors.New("a resource's type or title is no string")
	}
	if err != nil {
		return "", err
	}
	return token.String(), nil
}

// readValue reads a value and returns it as a part of the text that dec reads,
// since the decoder's own slice is only lent.
func readValue(dec *jsontext.Decoder, text []byte) (jsontext.Value, error) {
	value, err := dec.ReadValue()
	end := dec.InputOffset()
	return text[end-int64(len(value)) : end], err
}

// newDecoder reads JSON as Ruby writes it, which looks neither at duplicate keys
// nor at the encoding of strings.
func newDecoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// fileParameters are the parameters of a File that decide how its sources are
// looked up. Their values may be anything that a manifest says.
type fileParameters struct {
	Ensure            any `json:"ensure"`
	Source            any `json:"source"`
	SourceSelect      any `json:"sourceselect"`
	SourcePermissions any `json:"source_permissions"`
	Recurse           any `json:"recurse"`
	RecurseLimit      any `json:"recurselimit"`
	MaxFiles          any `json:"max_files"`
	Ignore            any `json:"ignore"`
	Links             any `json:"links"`
	Checksum          any `json:"checksum"`
}

// member is one key and value of a JSON object, as they were written.
type member struct {
	name  string
	value jsontext.Value
}

func splitObject(text []byte) ([]member, error) {
	dec := newDecoder(text)
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.Join(err, errors.New("it does not start with a brace"))
	}
	var members []member
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: token.String()}
		if m.value, err = readValue(dec, text); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return members, nil
}

// inliner collects what is added to a catalog.
type inliner struct {
	tree         *Tree
	checksumType string
	single       []namedMetadata
	recursive    []namedMetadata
	used         Used
}

type namedMetadata struct {
	title string
	value any
}

func (in *inliner) add(ctx context.Context, r inlineResource) error {
	var p fileParameters
	if err := json.Unmarshal(r.parameters, &p); err != nil {
		return fault.Wrap(fault.Invalid, err, "the parameters of File[%.200s] are not what they should be", r.title)
	}
	if text(p.Ensure) == "absent" {
		return nil
	}
	sources, ok := puppetSources(p.Source)
	if !ok {
		return nil
	}
	in.use(sources, p)
	if recurse := text(p.Recurse); recurse == "true" || recurse == "remote" {
		return in.addRecursive(ctx, r.title, sources, p)
	}
	return in.addSingle(ctx, r.title, sources, p)
}

// use takes note of where sources are looked for: all of them, as one that is not
// there yet may come.
func (in *inliner) use(sources []source, p fileParameters) {
	if c := text(p.Checksum); c == "mtime" || c == "ctime" {
		in.used.Trees = append(in.used.Trees, ".") // they tell when the version was deployed
	}
	for _, s := range sources {
		kind, single := moduleMounts[s.mount]
		if !single {
			in.used.Trees = append(in.used.Trees, in.tree.manifest.ModulePath...)
			continue
		}
		name, rest, _ := strings.Cut(s.path, "/")
		in.used.Modules = append(in.used.Modules, name)
		if module := in.tree.byName[name]; module != nil {
			in.used.Trees = append(in.used.Trees, path.Join(module.path, kind, rest))
		}
	}
}

func (in *inliner) options(p fileParameters) MetadataOptions {
	opt := MetadataOptions{Links: text(p.Links), ChecksumType: text(p.Checksum), SourcePermissions: text(p.SourcePermissions)}
	if opt.ChecksumType == "" {
		opt.ChecksumType = in.checksumType
	}
	return opt
}

// addSingle takes the first source that is there. If none is, the agent will ask,
// be told so, and fail that one resource, as it does with Puppet Server's
// catalogs; Puppet's own static catalogs would not compile at all.
func (in *inliner) addSingle(ctx context.Context, title string, sources []source, p fileParameters) error {
	for _, s := range sources {
		if !in.serves(s) {
			return nil // the agent asks whoever knows this mount
		}
		m, err := in.tree.Metadata(ctx, s.mount, s.path, in.options(p))
		if fault.Of(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return in.blame(err, title)
		}
		if uri, ok := in.contentURI(s, m.Path); ok {
			m.ContentURI, m.Source = uri, s.uri
			in.single = append(in.single, namedMetadata{title, m})
		}
		return nil
	}
	return nil
}

// serves tells whether a mount is one of the tree's.
func (in *inliner) serves(s source) bool {
	_, single := moduleMounts[s.mount]
	_, union := unionMounts[s.mount]
	return single || union
}

func (in *inliner) blame(err error, title string) error {
	return fault.Wrap(fault.Of(err), err, "File[%.200s]: %s", title, fault.Detail(err))
}

// addRecursive takes the first source that is there, or all of them.
func (in *inliner) addRecursive(ctx context.Context, title string, sources []source, p fileParameters) error {
	opt, err := in.searchOptions(p)
	if err != nil {
		return in.blame(err, title)
	}
	var found []namedMetadata
	for _, s := range sources {
		if !in.serves(s) {
			return nil
		}
		list, err := in.tree.Metadatas(ctx, s.mount, s.path, opt)
		if fault.Of(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return in.blame(err, title)
		}
		base, ok := in.contentURI(s, list[0].Path)
		if !ok {
			return nil
		}
		for i := range list {
			list[i].ContentURI = base
			if rel := *list[i].RelativePath; rel != "." {
				list[i].ContentURI = base + "/" + rel
			}
		}
		found = append(found, namedMetadata{s.uri, list})
		if selectAll := text(p.SourceSelect); selectAll == "" || selectAll == "first" {
			break
		}
	}
	if len(found) > 0 {
		in.recursive = append(in.recursive, namedMetadata{title, object(found)})
	}
	return nil
}

func (in *inliner) searchOptions(p fileParameters) (SearchOptions, error) {
	opt := SearchOptions{MetadataOptions: in.options(p), Recurse: true, Ignore: texts(p.Ignore)}
	if p.RecurseLimit != nil {
		limit, err := strconv.Atoi(text(p.RecurseLimit))
		if err != nil {
			return opt, fault.New(fault.Invalid, "recurselimit is %.40q, not a number", text(p.RecurseLimit))
		}
		opt.RecurseLimit, opt.Recurse = limit, limit != 0
	}
	if p.MaxFiles != nil {
		limit, err := strconv.Atoi(text(p.MaxFiles))
		if err != nil {
			return opt, fault.New(fault.Invalid, "max_files is %.40q, not a number", text(p.MaxFiles))
		}
		opt.MaxFiles = limit
	}
	return opt, nil
}

// contentURI names a file by its path below the environment, which static
// content is fetched by. False for what is not a module's file.
func (in *inliner) contentURI(s source, virtual string) (string, bool) {
	if s.mount != "modules" {
		return "", false
	}
	rel, ok := strings.CutPrefix(virtual, in.tree.virtual("")+"/")
	return "puppet:///" + rel, ok
}

// join writes the document with what was found at its end. Metadata that was
// there before is replaced.
func (in *inliner) join(members []member) ([]byte, error) {
	members = slices.DeleteFunc(members, func(m member) bool {
		return m.name == "metadata" || m.name == "recursive_metadata"
	})
	for _, added := range []namedMetadata{{"metadata", in.single}, {"recursive_metadata", in.recursive}} {
		found := added.value.([]namedMetadata)
		if len(found) == 0 {
			continue
		}
		value, err := object(found).MarshalJSON()
		if err != nil {
			return nil, err
		}
		members = append(members, member{added.title, value})
	}
	var doc bytes.Buffer
	doc.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			doc.WriteByte(',')
		}
		if err := writeJSON(&doc, m.name); err != nil {
			return nil, err
		}
		doc.WriteByte(':')
		doc.Write(m.value)
	}
	doc.WriteByte('}')
	return doc.Bytes(), nil
}

// object is a JSON object whose keys keep their order.
type object []namedMetadata

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	for i, item := range o {
		if i > 0 {
			buf.WriteByte(',')
		}
		if err := writeJSON(&buf, item.title); err != nil {
			return nil, err
		}
		buf.WriteByte(':')
		if err := writeJSON(&buf, item.value); err != nil {
			return nil, err
		}
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

func writeJSON(buf *bytes.Buffer, value any) error {
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	buf.Truncate(buf.Len() - 1) // Encode ends with a line feed
	return nil
}

// text is a parameter's value as a word; empty for none.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return ""
	}
}

func texts(value any) []string {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var words []string
	for _, item := range list {
		if item != nil {
			words = append(words, text(item))
		}
	}
	return words
}
