#!/usr/bin/env ruby
require 'json'
puts({ 'kernel' => `uname -s`.strip }.to_json)
