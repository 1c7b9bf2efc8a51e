#!/usr/bin/env ruby
require 'json'
order = JSON.parse($stdin.read)
puts({ 'status' => system('pgrep', '-x', order['name']) ? 'running' : 'stopped', 'by' => 'init.rb' }.to_json)
