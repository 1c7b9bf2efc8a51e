package tutti_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Every story of e2e waits for its turn beside the others. One that is not parallel, and has parts that wait for theirs, never ends: nobody has
// a turn before all stories have begun.
func TestStoriesWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("e2e/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in e2e: %v", err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || f.Name.Name == "TestMain" || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			if !calls(f.Body.List, "begin") && !calls(f.Body.List, "Parallel") {
				t.Errorf("%s: %s calls neither begin nor t.Parallel among its own statements", name, f.Name.Name)
			}
		}
	}
}

// calls says whether one of the statements is a call of a function or method of that name.
func calls(statements []ast.Stmt, name string) bool {
	for _, s := range statements {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			continue
		}
		call, ok := e.X.(*ast.CallExpr)
		if !ok {
			continue
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			if f.Name == name {
				return true
			}
		case *ast.SelectorExpr:
			if f.Sel.Name == name {
				return true
			}
		}
	}
	return false
}
