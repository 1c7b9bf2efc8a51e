# frozen_string_literal: true

# Takes memory and keeps it: itself, by children, or by what left its group, its session and its parent.
Puppet::Functions.create_function(:'attack::eat') do
  dispatch(:eat) { param 'String', :how }

  HOLD = 'held = []; begin; loop { held << ("x" * 1_000_000) }; rescue NoMemoryError; sleep; end'

  def eat(how)
    case how
    when 'by children' then 2.times { fork { instance_eval(HOLD) } }
    when 'by what it left behind' then 2.times { system('setsid', 'sh', '-c', 'setsid ruby -e "$0" & exit 0', HOLD) }
    else instance_eval(HOLD)
    end
    sleep
  end
end
