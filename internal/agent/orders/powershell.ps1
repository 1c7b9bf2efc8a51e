$ErrorActionPreference = 'Stop'
$utf8 = New-Object System.Text.UTF8Encoding $false
[Console]::OutputEncoding = $utf8
$OutputEncoding = $utf8

function ConvertTo-Plain($value) {
  if ($value -is [System.Management.Automation.PSCustomObject]) {
    $table = @{}
    foreach ($property in $value.PSObject.Properties) { $table[$property.Name] = ConvertTo-Plain $property.Value }
    return $table
  }
  if ($value -is [System.Array]) {
    $list = @(foreach ($item in $value) { , (ConvertTo-Plain $item) })
    return , $list
  }
  return $value
}

$reader = New-Object System.IO.StreamReader ([Console]::OpenStandardInput()), $utf8
$given = ConvertTo-Plain (ConvertFrom-Json $reader.ReadToEnd())
$declared = (Get-Command -Name $task -CommandType ExternalScript).Parameters
$parameters = @{}
foreach ($name in $given.Keys) {
  if ($declared -and $declared.ContainsKey($name)) { $parameters[$name] = $given[$name] }
}
$ErrorActionPreference = 'Continue'
try {
  & $task @parameters
  if ($null -ne $LASTEXITCODE) { exit $LASTEXITCODE }
  if (-not $?) { exit 1 }
} catch {
  [Console]::Error.WriteLine(($_ | Out-String))
  exit 1
}
