# frozen_string_literal: true

require 'digest'
require 'json'
require 'net/http'
require 'openssl'
require 'uri'

module TuttiTransport
  # Refused is what the server answers instead of what was asked for.
  class Refused < StandardError
    attr_reader :kind

    def initialize(kind, message)
      super(message)
      @kind = kind
    end
  end

  # Client orders jobs by Tutti's own API and waits for what comes of them.
  class Client
    OVER = %w[finished failed stopped].freeze
    PAGE = 1000

    def initialize(url, cacert:, token:, poll: 1.0, read_timeout: 120)
      @base = URI.parse("#{url.chomp('/')}/api/v1")
      raise ArgumentError, "service-url is #{url}; it must begin with https://" unless @base.is_a?(URI::HTTPS)

      @cacert = cacert
      @token = token
      @poll = poll
      @read_timeout = read_timeout
    end

    # connected is those of the nodes whose agents answer now.
    def connected(nodes)
      answer = post('/ping', targets: { nodes: nodes }, timeout: 5000)
      answer['items'].select { |pong| pong['milliseconds'] }.map { |pong| pong['node'] }
    rescue Refused => e
      raise unless e.kind == 'not_found' # a node that nobody knows
      return [] if nodes.length == 1

      nodes.flat_map { |node| connected([node]) }
    end

    # upload stores a file for a job, and gives its digest.
    def upload(path)
      File.open(path, 'rb') do |file|
        request = Net::HTTP::Post.new(target('/job-files'), 'Content-Type' => 'application/octet-stream', 'Content-Length' => file.size.to_s)
        request.body_stream = file
        ask(request)['digest']
      end
    end

    # run orders a job of a kind (command, script, task, file) and waits until it is over: one outcome for each node, by name. The server
    # bounds how long a run may take.
    def run(kind, nodes, order)
      job = post("/jobs/#{kind}", order.merge(targets: { nodes: nodes }))['job']
      until OVER.include?(job['state'])
        sleep @poll
        job = get("/jobs/#{job['id']}")
      end
      outcomes(job['id'])
    end

    private

    def outcomes(id)
      all = {}
      each("/jobs/#{id}/runs") do |run|
        all[run['node']] = { state: run['state'], reason: run['reason'], exit_code: run['exit_code'], stdout: +'', stderr: +'', merged: +'', cut: run.dig('output', 'cut') }
      end
      each("/jobs/#{id}/output") do |line|
        text = line['text'] + (line['more'] ? '' : "\n")
        all[line['node']][line['stream'].to_sym] << text
        all[line['node']][:merged] << text
      end
      all.each_value { |out| out[:stderr] << "tutti: the server kept only a part of this output (job #{id})\n" if out[:cut] }
      all
    end

    # each asks for one page behind the other.
    def each(path, &block)
      after = nil
      loop do
        page = get("#{path}?#{URI.encode_www_form({ limit: PAGE, after: after }.compact)}")
        page['items'].each(&block)
        after = page['next']
        return if after.nil? || after.empty?
      end
    end

    def get(path)
      ask(Net::HTTP::Get.new(target(path)))
    end

    def post(path, body)
      request = Net::HTTP::Post.new(target(path), 'Content-Type' => 'application/json')
      request.body = JSON.generate(body)
      ask(request)
    end

    def target(path)
      @base.request_uri + path
    end

    def ask(request)
      request['Authorization'] = "Bearer #{@token}"
      http = Net::HTTP.new(@base.host, @base.port)
      http.use_ssl = true
      http.ca_file = @cacert
      http.verify_mode = OpenSSL::SSL::VERIFY_PEER
      http.read_timeout = @read_timeout
      http.max_retries = 0 # an order that was sent twice would be two jobs
      response = http.start { |connection| connection.request(request) }
      answer = JSON.parse(response.body)
      return answer if response.is_a?(Net::HTTPSuccess)

      raise Refused.new(answer['kind'], answer['message'])
    rescue JSON::ParserError
      raise Refused.new('unreadable', "#{@base.host}:#{@base.port} answers #{response.code} and no JSON: is it a Tutti server?")
    end
  end
end
