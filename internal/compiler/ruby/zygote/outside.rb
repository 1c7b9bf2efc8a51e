# frozen_string_literal: true

module Tutti
  # What no list of inputs can hold: time, chance, other programs, the network, the
  # server's own facts and variables. A catalog in which code of the environment
  # used them is volatile.
  #
  # Only code of the environment counts: Puppet looks at the clock for its log. Types
  # and providers count like any other Ruby once code calls them; see Loading for what
  # happens while Puppet loads them.
  module Outside
    # Puppet's functions that pass on what they are told.
    PASSING = %r{/puppet/(?:functions|parser/functions|pops/time)/}.freeze

    KEPT = [] # functions as they were, by the number that their hooks know
    MOST_CHANCES = 1000 # of a compile that are looked up
    FACTER = "reads the server's own facts"

    class << self
      def install
        @puppet = File.dirname($LOADED_FEATURES.grep(%r{/puppet/pops\.rb\z}).first.to_s)
        clocks
        chances
        programs
        network
        surroundings
      end

      # Whatever the code is that does it, unless it is a provider that is loaded.
      def seen(what)
        where = place
        Inputs.note("volatile:#{what}#{where.empty? ? '' : " in #{where}"}") if where
      end

      # Only if code of the environment does it.
      def seen_by_code(what)
        return unless Inputs.listening? && Inputs.places

        caller = caller_locations(2, 6).map(&:path).find { |path| path && !path.start_with?(__dir__, '<internal:') }.to_s
        return if puppet?(caller)

        where = place
        Inputs.note("volatile:#{what}#{where.empty? ? '' : " in #{where}"}") if where && (!where.empty? || caller.match?(PASSING))
      end

      # If code of the environment does it, or has somebody do it.
      def seen_below_code(what)
        return unless Inputs.listening? && Inputs.places

        where = place(facter: what == FACTER)
        return seen_by_code(what) if where == ''

        Inputs.note("volatile:#{what} in #{where}") if where
      end

      # Only if a line of the environment does it by itself: Ruby's libraries do it, too.
      def seen_in_code(what)
        return unless Inputs.listening? && Inputs.places

        caller = caller_locations(2, 6).map(&:path).find { |path| path && !path.start_with?(__dir__, '<internal:') }.to_s
        seen_below_code(what) if caller.start_with?('(erb)') || Inputs.places.below(caller)
      end

      # Whoever keeps what srand returns has got hold of the seed before.
      def seed(given)
        chance if Careless.seeds
        given.empty? ? unseeded : @seeded = true
      end

      def unseeded
        @seeded = false
        @chances = 0
      end

      # Who asks for many random numbers is not looked up each time: that costs more
      # memory than a compile that does nothing else may have before it is collected.
      def chance
        return if @seeded

        @chances = @chances.to_i + 1
        return Inputs.note('volatile:uses random numbers') if @chances > MOST_CHANCES

        seen_by_code('uses random numbers')
      end

      # A date is taken from the clock as far as its text does not say it.
      def completed(read, name, args, options)
        given = name == :strptime ? args.first(2) : args.first(name == :parse ? 2 : 1)
        parts = read.call(*given, **options)
        seen_by_code('reads the clock') unless parts.nil? || parts.empty? || complete?(parts)
      rescue StandardError # Ruby says it better
        nil
      end

      # Whether a file is Puppet's own, or ours.
      def puppet?(path)
        path.start_with?(@puppet, __dir__, '<internal:') && !path.match?(PASSING)
      end

      # Hooks functions that a module has, and whoever includes it as private methods. The text of
      # a hook is run first; it finds the arguments in args. Another function may be called instead.
      #
      # Hooks take the place of functions: super would find nothing for an object that does not
      # include the module and only borrows its methods, as each Delegator borrows Kernel's.
      def implicitly(names, hook, target = Kernel, instead: nil, call: '%s')
        [target, target.singleton_class].each do |there|
          names.each do |name|
            hidden = there.private_method_defined?(name)
            next unless hidden || there.method_defined?(name)

            KEPT << there.instance_method(instead || name)
            kept = "::Tutti::Outside::KEPT[#{KEPT.size - 1}].bind_call(self, *args, **options, &block)"
            there.send(:alias_method, name, name) # Ruby then does not warn that it is defined again
            there.class_eval("def #{name}(*args, **options, &block); #{hook}; #{format(call, kept)}; end", __FILE__, __LINE__)
            there.send(:private, name) if hidden
          end
        end
      end

      # The hook that notes what is done when seen by one of the methods above.
      def hook(what, report = 'seen_by_code')
        "::Tutti::Outside.#{report}(#{what.dump})"
      end

      private

      # A year is enough: what is smaller begins at 1. But years of weeks are others.
      def complete?(parts)
        return true if parts.key?(:jd) || parts.key?(:seconds)
        return !parts.key?(:cweek) && !parts.key?(:cwday) if parts.key?(:year)

        parts.key?(:cwyear) && (parts.keys & %i[mon mday yday]).empty?
      end

      # The line of the environment's code that is running; empty when there is none;
      # nil when what runs can only matter to nodes.
      def place(facter: false)
        loading = Loading.new(facter)
        caller_locations(2).each do |at|
          path = at.path or next
          inside = path.start_with?('(erb)') ? 'a template' : path.start_with?('/') && Inputs.places.below(path)
          found = loading.judge(path, inside, at.lineno)
          return found == :loading ? nil : found if found
        end
        loading.end
      end

      def watch(target, names, what, report = 'seen_by_code')
        hooks = Module.new
        names.each do |name|
          next unless target.method_defined?(name) || target.private_method_defined?(name)

          hooks.class_eval("def #{name}(*args, **options, &block); #{hook(what, report)}; super; end", __FILE__, __LINE__)
          hooks.send(:private, name) if target.private_method_defined?(name)
        end
        target.prepend(hooks)
      end

      def clocks
        require 'date'
        watch(Time.singleton_class, %i[now], 'reads the clock')
        watch(Date.singleton_class, %i[today], 'reads the clock')
        watch(DateTime.singleton_class, %i[now], 'reads the clock')
        implicitly(%i[clock_gettime pid ppid times], hook('reads the clock or the process'), Process)
        partial_dates
        watch(Dir.singleton_class, %i[pwd getwd home], 'asks for the working directory', 'seen_in_code')
        # What another thread reads is not noted.
        watch(Thread.singleton_class, %i[new start fork], 'starts a thread')
        Time.singleton_class.prepend(Module.new do
          def new(*args, **options)
            Outside.seen_by_code('reads the clock') if args.empty?
            super
          end
        end)
        Puppet::Pops::Time::Timestamp.singleton_class.prepend(Module.new do
          def now
            Inputs.note('volatile:reads the clock (Timestamp)')
            super
          end
        end)
      end

      # Dates that are made of texts which may not name a year.
      def partial_dates
        kinds = %i[parse strptime iso8601 rfc3339 xmlschema rfc2822 rfc822 httpdate jisx0301]
        [Date, DateTime].each do |kind|
          hooks = Module.new
          kinds.each do |name|
            read = Date.method("_#{name}")
            hooks.define_method(name) do |*args, **options, &block|
              Outside.completed(read, name, args, options) if Inputs.listening? && Inputs.places
              super(*args, **options, &block)
            end
          end
          kind.singleton_class.prepend(hooks)
        end
      end

      def chances
        require 'securerandom'
        Dice::HOOKS.each { |name, hook| implicitly([name], hook) }
        Random.singleton_class.prepend(Dice)
        watch(Random.singleton_class, %i[bytes random_number new_seed urandom seed], 'uses random numbers', 'seen_by_code')
        watch(SecureRandom.singleton_class, %i[gen_random bytes], 'uses random numbers', 'seen_by_code')
        foreign_chances
        Random.prepend(Module.new do
          def initialize(*seed)
            Outside.chance if seed.empty?
            super
          end
        end)
        Array.prepend(Shuffles)
      end

      # Those who take chance from elsewhere than Ruby.
      def foreign_chances
        require 'openssl'
        watch(OpenSSL::Random.singleton_class, %i[random_bytes pseudo_bytes], 'uses random numbers')
        watch(OpenSSL::BN.singleton_class, %i[rand pseudo_rand rand_range pseudo_rand_range generate_prime], 'uses random numbers')
        [OpenSSL::PKey::RSA, OpenSSL::PKey::DSA, OpenSSL::PKey::EC].each { |kind| watch(kind.singleton_class, %i[generate], 'uses random numbers') }
      end

      def programs
        implicitly(%i[` system spawn exec fork], hook('runs a program', 'seen_below_code'))
        implicitly(%i[spawn exec fork], hook('runs a program', 'seen_below_code'), Process)
        watch(IO.singleton_class, %i[popen], 'runs a program', 'seen_below_code')
      end

      def network
        watch(Socket.singleton_class, %i[new open tcp udp getaddrinfo gethostbyname gethostname getifaddrs ip_address_list], 'uses the network', 'seen_below_code')
        [TCPSocket, UDPSocket, UNIXSocket, TCPServer].each { |kind| watch(kind.singleton_class, %i[new open gethostbyname], 'uses the network', 'seen_below_code') }
        watch(Addrinfo.singleton_class, %i[getaddrinfo tcp udp], 'uses the network', 'seen_below_code')
        watch(IPSocket.singleton_class, %i[getaddress], 'uses the network', 'seen_below_code')
      end

      def surroundings
        require 'etc'
        implicitly(%i[getlogin getpwnam getpwuid getpwent getgrnam getgrgid getgrent passwd group uname nprocessors sysconf confstr],
                   hook("asks the server's system", 'seen_below_code'), Etc)
        # The server gives every process the same variables, but for the directory.
        ENV.singleton_class.prepend(Variables)
        watch(ENV.singleton_class, %i[to_h to_hash to_a inspect each each_pair values select select! filter filter! filter_map reject reject! slice
                                      values_at value? has_value? key assoc rassoc except delete delete_if keep_if invert find_all], "reads the server's variables")
        File.singleton_class.prepend(Expansions)
        return unless Object.autoload?(:Facter) || defined?(::Facter) || optional('facter')

        watch(::Facter.singleton_class, %i[value fact [] to_hash to_user_output collection list resolve], FACTER, 'seen_below_code')
      end

      def optional(library)
        require library
      rescue LoadError
        false
      end
    end

    # What makes an absolute path of the working directory, or of HOME.
    module Expansions
      %i[expand_path absolute_path].each do |name|
        define_method(name) do |path, *from|
          path = path.to_path if path.respond_to?(:to_path)
          Outside.seen_in_code('asks for the working directory') if path.is_a?(String) && !path.start_with?('/') && (from.empty? || path.start_with?('~'))
          super(path, *from)
        end
      end
    end

    # The only variables that differ between processes.
    module Variables
      %i[[] fetch key].each do |name|
        define_method(name) do |key, *default, &block|
          Outside.seen_by_code("reads the server's variables") if %w[HOME TMPDIR].include?(key)
          super(key, *default, &block)
        end
      end
    end

    # Random numbers without a seed of the code's own.
    module Dice
      HOOKS = { rand: '::Tutti::Outside.chance', srand: '::Tutti::Outside.seed(args)' }.freeze

      HOOKS.each do |name, hook|
        class_eval("def #{name}(*args); #{hook}; super; end", __FILE__, __LINE__)
      end
    end

    # What Array does by chance.
    module Shuffles
      %i[shuffle shuffle! sample].each do |name|
        define_method(name) do |*args, **options|
          Outside.chance unless options.key?(:random)
          super(*args, **options)
        end
      end
    end
  end
end
