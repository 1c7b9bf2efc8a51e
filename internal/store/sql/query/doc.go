// Package query makes statements of SQL from questions in the query language (PQL, and PuppetDB's AST, which is
// read as the same): whoever asks the inventory gets rows as JSON, in the form in which PuppetDB gives them.
//
// It is a compiler and runs nothing. A Translation knows the database's words and what is worth knowing of its
// contents before a statement is made; Statement and Sums give texts with placeholders, and values only ever become
// arguments. A Renderer writes the rows that the statement finds.
//
// The statements are the same for both databases; what they say differently stands in Words.
package query
