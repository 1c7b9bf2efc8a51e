package server

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/server/settings"
)

// wired are the packages whose ports a server fills.
var wired = []string{
	"broker", "checkin", "classify", "code", "codecheck", "compile", "deliver", "event", "factqueue", "job", "pki", "policy", "preview",
	"rbac", "release", "target",
}

// mayBeNil are ports that nobody has to fill, each with the reason.
var mayBeNil = map[string]string{
	"compile.Warmer.drop":                        "it is there while something is warmed",
	"pki.Authority.Requests.cfg.Autosign.Decide": "there is a program if the setting autosign names one",
	"pki.Authority.Requests.cfg.Shared":          "a server that is alone shares nothing; the next three are the same",
	"pki.Authority.Revocations.shared":           "as above",
	"pki.Authority.Server.revocations.shared":    "as above",
	"pki.Authority.shared":                       "as above",
}

// A port that is left out does nothing, and says nothing: nodes are all in live mode, there are no groups, nothing is told. So
// every interface and function in what a server is made of is given. It is looked at by reflection, which no wiring shares.
func TestNoPortIsLeftOut(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*settings.Config) {})
	var empty []string
	seen := 0
	for _, v := range reflect.ValueOf(p).Elem().Fields() {
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		if v.Kind() == reflect.Struct && isWired(v.Type()) {
			seen++
			empty = append(empty, emptyPorts(v, path.Base(v.Type().PkgPath())+"."+v.Type().Name())...)
		}
	}
	if seen < len(wired) {
		t.Errorf("only %d parts are looked at", seen)
	}
	for _, name := range empty {
		if mayBeNil[name] == "" {
			t.Errorf("%s is left out: it does nothing", name)
		}
	}
	for name := range mayBeNil {
		if !slices.Contains(empty, name) {
			t.Errorf("%s is given: take it off the list", name)
		}
	}
}

func isWired(of reflect.Type) bool {
	_, name, ours := strings.Cut(of.PkgPath(), "/internal/")
	return ours && slices.Contains(wired, name)
}

// emptyPorts are the interfaces and functions of a part, and of the parts that are or are pointed to by its fields, that are nil.
func emptyPorts(v reflect.Value, name string) (empty []string) {
	for i := range v.NumField() {
		field, at := v.Field(i), name+"."+v.Type().Field(i).Name
		switch {
		case (field.Kind() == reflect.Interface || field.Kind() == reflect.Func) && field.IsNil():
			empty = append(empty, at)
		case field.Kind() == reflect.Struct && isWired(field.Type()):
			empty = append(empty, emptyPorts(field, at)...)
		case field.Kind() == reflect.Pointer && !field.IsNil() && field.Elem().Kind() == reflect.Struct && isWired(field.Type().Elem()):
			empty = append(empty, emptyPorts(field.Elem(), at)...)
		}
	}
	return empty
}
