notice('one')
