# frozen_string_literal: true

# The entry point of a zygote: file descriptor 3 is the control socket, standard
# input is the lifeline to the server (see PROTOCOL.md).
$LOAD_PATH.unshift(__dir__)
$stdout.sync = true
$stderr.sync = true

require 'zygote'

control = UNIXSocket.for_fd(3)
control.close_on_exec = true
Tutti::Zygote.new(control).run
