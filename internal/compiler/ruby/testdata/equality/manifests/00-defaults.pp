File { owner => 'root', group => 'root', mode => '0644' }
$top = 'top scope'
