package tutti_test

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// How many methods one thing may have: with more it is several things.
const (
	typeMethods      = 40
	interfaceMethods = 9
)

// wide begins the note beside an interface with more methods than interfaceMethods: why it is one thing even so.
const wide = "Wide: "

func TestATypeIsOneThing(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for path, file := range wholeFiles(t) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				counts[packageOf(path)+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	for name, n := range counts {
		if n > typeMethods {
			t.Errorf("%s has %d methods, and %d may be: find the several things that it is", name, n, typeMethods)
		}
	}
	if len(counts) < 300 {
		t.Errorf("%d types are looked at: this test has lost its eyes", len(counts))
	}
}

func TestAPortIsNarrow(t *testing.T) {
	t.Parallel()
	ports := map[string]port{}
	for path, file := range wholeFiles(t) {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				addPorts(ports, packageOf(path), file, d)
			}
		}
	}
	for name, p := range ports {
		switch n := methodsOf(ports, name); {
		case n > interfaceMethods && !strings.Contains(p.note, wide):
			t.Errorf("%s has %d methods, and %d may be: divide it, or say behind %q in its comment why it is one thing", name, n, interfaceMethods, wide)
		case n <= interfaceMethods && strings.Contains(p.note, wide):
			t.Errorf("%s has %d methods and does not need its note", name, n)
		}
	}
	if len(ports) < 100 {
		t.Errorf("%d interfaces are looked at: this test has lost its eyes", len(ports))
	}
}

// port is an interface.
type port struct {
	own      int      // methods
	embedded []string // other interfaces, as package.Name
	note     string
}

func addPorts(ports map[string]port, pkg string, file *ast.File, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		declared := spec.(*ast.TypeSpec)
		kind, ok := declared.Type.(*ast.InterfaceType)
		if !ok {
			continue
		}
		p := port{note: decl.Doc.Text() + declared.Doc.Text()}
		for _, member := range kind.Methods.List {
			switch e := member.Type.(type) {
			case *ast.Ident:
				p.embedded = append(p.embedded, pkg+"."+e.Name)
			case *ast.SelectorExpr:
				p.embedded = append(p.embedded, imported(file, e.X.(*ast.Ident).Name)+"."+e.Sel.Name)
			default:
				p.own += len(member.Names)
			}
		}
		ports[pkg+"."+declared.Name.Name] = p
	}
}

// methodsOf counts the methods of an interface with those of the interfaces in it; one of other people's counts as one.
func methodsOf(ports map[string]port, name string) int {
	p, ours := ports[name]
	if !ours {
		return 1
	}
	n := p.own
	for _, other := range p.embedded {
		n += methodsOf(ports, other)
	}
	return n
}

// imported is the package of this module that a file calls name.
func imported(file *ast.File, name string) string {
	for _, spec := range file.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && imp[strings.LastIndex(imp, "/")+1:] == name {
			return strings.TrimPrefix(imp, module)
		}
	}
	return name
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}
