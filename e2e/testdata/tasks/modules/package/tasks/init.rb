#!/usr/bin/env ruby
require 'json'
order = JSON.parse($stdin.read)
puts({ 'status' => `dpkg-query -W -f '${db:Status-Status}' #{order['name']}`, 'by' => 'init.rb' }.to_json)
