class empty { }
