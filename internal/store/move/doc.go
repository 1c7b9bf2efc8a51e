// Package move takes records from one database to another one, of the same or of another kind, while no server uses them.
//
// Rows are read from the one and written into the other in one transaction. Then every table is read anew on both sides, by other code, and
// added up: number of rows, a digest over all of them, the last number that was given. Only if all agree the source is marked, and
// then the target may be used.
//
// # States
//
// What a database says of itself is one row (Mark), and servers use no database that has one:
//
//	         source      target       a server starts on    Next
//	begin    free        empty        the source            Copy
//	load     free        empty        the source            Copy     (the transaction is not over)
//	check    free        arriving     the source            Copy     (what is there is thrown away)
//	mark     left        arriving     neither               Confirm
//	end      left        free         the target            Done
//
// So at no moment a server could start on both, and whoever kills a move runs it again. The source is only read until the last
// but one step, which is one transaction.
//
// # Errors
//
// Conflict for databases that do not go together, and for rows that are not the same on both sides.
//
// # Concurrency
//
// Run works alone: the caller keeps servers away from both databases.
package move
