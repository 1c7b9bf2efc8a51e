# A name of the form Type[title], such as Shop[eu] or Shop::Db[eu].
type Tutti::Ref = Pattern[/\A[A-Za-z][A-Za-z0-9_]*(::[A-Za-z][A-Za-z0-9_]*)*\[[^\[\]'"[:cntrl:]]+\]\z/]
