package cli

// hostCommands are what only the server's operating system has.
var hostCommands = []declared{serverCommand, backupCommand, blobsCommand, moveCommand, demoCommand}

// localTokens is what works on the token in the data directory.
var localTokens = []declared{tokenRotate}

// localCA is what works on the CA's files.
var localCA = []declared{caImport, caAdopt}
